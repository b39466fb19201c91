"""The page ``docs/machines.md``: runs, rows and their classes, figures.

Flow: rows, tasks, figures, page, __main__
"""
