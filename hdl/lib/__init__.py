"""General-purpose cells, independent of the monitor.

Flow: ram, fifo, skid, reset_net, spine, bit_sliced, lfsr, deadline
"""
