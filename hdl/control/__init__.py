"""The host's access to the board: the bus, its initiator, and the registers.

Flow: pbx, initiator, registers
"""
