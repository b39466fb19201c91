"""Tests of `sim/emulate`."""
