"""One measurement: a program or the bandwidth test, run and tabulated.

Flow: printed, fit, monitor, benchmark, experiment, tables, tried
"""
