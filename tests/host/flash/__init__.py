"""Tests of `host/flash`."""
