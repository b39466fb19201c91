"""From a board into a RUN.

Flow: recorder, keeping, drain, process, together
"""
