"""Port writes of nodes, read from files, with exact times.

Flow: picoseconds, rows, stimulus, input_file, kinds, port_mapping, csv_file, samples, vcd_file, saleae_file, sr_file,
run_file, port_delay, port_rule, serial_span, other_reading, other_wire
"""
