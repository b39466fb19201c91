"""Port writes of nodes, read from files, with exact times.

Flow: picoseconds, rows, stimulus, port_mapping, csv_file, vcd_file, sr_file, run_file, port_delay, port_rule
"""
