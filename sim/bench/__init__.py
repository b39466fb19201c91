"""Models for cocotb benches: ports, streams, stalls.

Flow: stalls, port_models, cocotb_models
"""
