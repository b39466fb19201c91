"""Checks of a board and of its wires.

Flow: phases, selftest, wirecheck, counting, reduction
"""
