"""Converts blocks to tables. The ledger counts every loss: refused by the board, or lost on the link.

Flow: event_blocks, overflows, loss_accounting, ledger, live_ledger, event_framing, drift, alignment, partitions,
    board_store, table_files, account, decode, soundness, decoded_run, unrecorded, census, marks
"""
