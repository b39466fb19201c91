"""Measurements of the gateware: speed, size, and the reliability of its synchronizers.

Flow: core_timing, levels, link_timing, resources, kinds, metastability
"""
