"""Tests of `hdl/merge`."""
