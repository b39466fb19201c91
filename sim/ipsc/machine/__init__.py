"""The emulated cube: processors, network, noise, kernel, and what records its events.

Flow: cpu, network, noise, nx2, recorders, machine, traces
"""
