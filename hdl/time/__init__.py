"""The time of the board: one global clock, and how boards agree on it.

Flow: timebase, board_sync, echo, board_time
"""
