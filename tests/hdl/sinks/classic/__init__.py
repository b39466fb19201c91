"""Tests of `hdl/sinks/classic`."""
