"""Models for cocotb benches: ports, streams, stalls.

Flow: stalling, port_models, cocotb_models
"""
