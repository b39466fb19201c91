"""The phase-locked loops of each FPGA family.

Flow: pll, ecp5_pll, gowin_pll, ice40_pll, xilinx_pll
"""
