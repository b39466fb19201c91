"""Figures of a RUN, and questions to it.

Flow: stats, query, distributions, losses
"""
