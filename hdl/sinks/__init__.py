"""What becomes of the strobe vectors: event frames as in 1990, or compact items.

Flow: classic, extended, sinks
"""
