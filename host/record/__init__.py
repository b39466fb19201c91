"""From a board into a RUN, and from RUNs into others.

Flow: recorder, keep, drain, ask, process, several_boards, excerpt, joined, printed_items
"""
