"""One measurement: a program or the bandwidth test, run and tabulated.

Flow: printed_values, work_fit, monitor, benchmark, windows, experiment, tables, emulated, waves, variations
"""
