"""The host's way in: the bus, who drives it, and the registers.

Flow: pbx, initiator, registers
"""
