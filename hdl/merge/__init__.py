"""Merges many nodes into one stream of stamped strobe vectors. Only stages in here drop items or stamp them.

``drop_gate`` decides which items are dropped, ``window`` stamps those that are not.

Flow: timebase, board_sync, board_time, drop_gate, gate_room, node_fifo, window, merge
"""
