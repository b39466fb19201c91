"""A RUN as a page with figures.

Flow: report, named, board_map, figures, style
"""
