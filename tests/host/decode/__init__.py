"""Tests of `host/decode`."""
