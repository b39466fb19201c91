"""The virtual board: the gateware, compiled by Verilator, behind the host's link.

Flow: clocked, build, verilated, deep_board, memory, uart_board, usb_board, link, open
"""
