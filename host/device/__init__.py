"""One board at a link: its settings and registers.

Flow: trigger, settings, device
"""
