"""Measurements of the gateware: speed, size, and the reliability of its synchronizers.

Flow: core_timing, link_timing, resources, metastability
"""
