"""The virtual board: the gateware, compiled by Verilator, behind the host's link.

Flow: clocked, build, native, deep, memory, uart_board, usb_board, virtual
"""
