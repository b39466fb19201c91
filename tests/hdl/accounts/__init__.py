"""Tests of `hdl/accounts`."""
