"""Records boards into RUNs, and makes RUNs from other RUNs.

Flow: interrupt, recorder, keep, drain, ask, process, wiring, echo, several_boards, excerpt, joined, printed_items,
    checked
"""
