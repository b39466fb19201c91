"""Tests of `hdl/sinks/extended`."""
