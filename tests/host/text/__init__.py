"""Tests of `host/text`."""
