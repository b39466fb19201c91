"""Tests of `hdl/transport/pcie`."""
