"""Strobe vectors are taken apart into the nibbles of items.

Flow: lineup, halver, expander
"""
