"""Tests of `hdl/transport/usb`."""
