"""Blocks to tables, with accounts of what was lost.

Flow: ledger, framing, decode, merging, census
"""
