"""Tests of `host/link`."""
