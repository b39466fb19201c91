"""Figures of a RUN, and queries on it.

Flow: stats, locked, board_columns, by_board, query, named_events, logs, state_table, semantic_tables, causality,
    distributions, losses, junk, rejects
"""
