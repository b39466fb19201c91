"""The page ``docs/machines.md``: runs, rows and their classes, figures.

Flow: blind, tasks, evaluation, rows, ipsc860_rows, asciq_rows, sp2_rows, qsnet_rows, blind_rows, figures, page,
    __main__
"""
