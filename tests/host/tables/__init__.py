"""Tests of `host/tables`."""
