"""Tests of `hdl/stream`."""
