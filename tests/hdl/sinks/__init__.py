"""Tests of `hdl/sinks`."""
