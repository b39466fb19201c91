"""The host's access to the board: the bus, its initiator, and the registers of ``hdl/layout/register_map.py``.

Flow: pbx, initiator, bindings, registers
"""
