"""Sections 5 and 6 of the paper, run again: figures, verdicts and the page.

Flow: evaluation, figures, claims, verdicts, page, __main__
"""
