"""Whether the board is right, and the wires are.

Flow: selftest, wirecheck, counting, reduction
"""
