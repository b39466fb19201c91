"""Figures of a RUN, and queries on it.

Flow: stats, query, distributions, losses
"""
