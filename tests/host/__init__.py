"""Tests of `host`."""
