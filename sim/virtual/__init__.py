"""The virtual board: the gateware, compiled by Verilator, which the host reaches as a link.

Flow: clocked, strided, resting, build, verilated, deep_board, memory, uart_board, usb_board, pcie, link, open
"""
