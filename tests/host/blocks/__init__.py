"""Tests of `host/blocks`."""
