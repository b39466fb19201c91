"""Tests of `hdl/gate`."""
