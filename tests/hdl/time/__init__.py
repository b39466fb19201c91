"""Tests of `hdl/time`."""
