"""From a board into a RUN.

Flow: recorder, keep, drain, process, several_boards
"""
