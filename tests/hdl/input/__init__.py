"""Tests of `hdl/input`."""
