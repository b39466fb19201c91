"""Figures of a RUN, and queries on it.

Flow: stats, query, named_events, logs, semantic_tables, causality, distributions, losses
"""
