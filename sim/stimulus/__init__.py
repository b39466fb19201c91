"""What nodes write, read from files, in exact times.

Flow: exact, rows, stimulus, port, csvfile, vcdfile, srfile, runfile, port_rule
"""
