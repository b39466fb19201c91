"""The host's access to the board: the bus, its initiator, and the registers, whose addresses are in ``hdl/layout.py``.

Flow: pbx, initiator, registers
"""
