"""Benches of whole boards."""
