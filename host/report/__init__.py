"""A RUN as a page with figures.

Flow: report, named, figures, style
"""
