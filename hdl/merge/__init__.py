"""Merges many nodes into one stream of stamped strobe vectors.

``merge`` connects the gate, the node FIFOs and the window; only ``window`` stamps items.

Flow: window, merge
"""
