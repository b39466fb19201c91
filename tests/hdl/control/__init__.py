"""Tests of `hdl/control`."""
