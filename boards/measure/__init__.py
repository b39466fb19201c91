"""How fast the gateware is, how large, and how sure its synchronizers are.

Flow: core_timing, link_timing, resources, metastability
"""
