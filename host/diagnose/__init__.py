"""Checks of a board and of its wires.

Flow: selftest, wirecheck, counting, reduction
"""
