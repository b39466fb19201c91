"""A USB device: descriptors, endpoints, PHYs, and the link made of them.

Flow: usb_descriptors, usb_requests, usb_sender, usb_bulk, usb_phy, usb
"""
