"""Cells that know nothing of monitors.

Flow: ram, fifo, skid, reset_net, spine, bit_sliced, lfsr, deadline
"""
