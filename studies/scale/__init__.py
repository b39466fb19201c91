"""A machine of many boards, simulated: some boards by the gateware, the others by a model of it.

Flow: workload, recording_model, boards, simulate
"""
