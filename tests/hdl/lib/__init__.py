"""Tests of `hdl/lib`."""
