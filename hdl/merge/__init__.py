"""Merges many nodes into one row of stamped strobe vectors: the only rooms that drop items, and that stamp them.

Flow: timebase, board_sync, board_time, gate, gate_room, node_fifo, window, merge
"""
