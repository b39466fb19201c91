"""From a board into a RUN.

Flow: recorder, keep, drain, ask, process, several_boards
"""
