"""The verilated board as a PCIe function, which a virtual machine or a test drives.

Flow: pcie_board
"""
