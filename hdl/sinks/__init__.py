"""The sinks turn strobe vectors into event frames as in 1990, or into compact items.

Flow: classic, extended, sinks
"""
