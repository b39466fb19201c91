"""Tests of `hdl/items`."""
