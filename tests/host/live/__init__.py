"""Tests of `host/live`."""
