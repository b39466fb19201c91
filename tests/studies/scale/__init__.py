"""Machines of many boards, simulated."""
