"""Blocks to tables, with accounts of what was lost.

Flow: ledger, event_framing, decode, board_merge, census
"""
