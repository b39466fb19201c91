"""Tests of `hdl/transport`."""
