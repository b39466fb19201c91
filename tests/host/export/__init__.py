"""Tests of `host/export`."""
