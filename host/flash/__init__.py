"""Bitstreams, and the programmers that load them.

Flow: bitstreams, flashing
"""
