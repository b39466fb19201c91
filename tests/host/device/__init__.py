"""Tests of `host/device`."""
