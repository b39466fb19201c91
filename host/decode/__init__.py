"""Blocks to tables. The ledger counts every loss: refused by the board, or lost on the link.

Flow: ledger, event_framing, decode, board_merge, table_files, decoded_run, census
"""
