"""Tests of `host/cli`."""
