"""USB device: descriptors, endpoints, PHYs, and the link made of them.

Flow: descriptors, control, sender, bulk, phy, link
"""
