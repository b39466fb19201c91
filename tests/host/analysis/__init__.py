"""Tests of `host/analysis`."""
