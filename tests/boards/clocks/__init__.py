"""Tests of `boards/clocks`."""
