"""Many nodes become one row of stamped strobe vectors. Only here items are dropped, and only here stamped.

Flow: timebase, board_sync, board_time, gate, gate_room, node_fifo, window, merge
"""
