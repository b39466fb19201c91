"""Tests of `hdl/trigger`."""
