"""Tests of `hdl/transport/uart`."""
