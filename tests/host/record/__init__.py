"""Tests of `host/record`."""
