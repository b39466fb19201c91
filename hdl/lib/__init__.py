"""General-purpose cells, independent of the monitor.

Flow: ram, fifo, skid, signatures, reset_net, spine, bit_sliced, lfsr, deadline
"""
