"""Tests of `boards/toolchain`."""
