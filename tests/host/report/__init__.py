"""Tests of `host/report`."""
