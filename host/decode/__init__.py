"""Blocks to tables, with accounting of all losses.

Flow: ledger, event_framing, decode, board_merge, table_files, decoded_run, census
"""
