"""Many nodes become one row of stamped strobe vectors. Only here items are dropped, and only here stamped.

Flow: timebase, sync, board_time, gate, room, node_fifo, window, merge
"""
