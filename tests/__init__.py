"""Tests; their tree is that of the sources."""
