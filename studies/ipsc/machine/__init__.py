"""The emulated cube: processors, network, noise, kernel, and the recorders of its events.

Flow: cpu, network, noise, nx2, recorders, machine, traces
"""
