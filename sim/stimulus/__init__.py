"""What nodes write, read from files, in exact times.

Flow: picoseconds, rows, stimulus, port_mapping, csv_file, vcd_file, sr_file, run_file, port_rule
"""
