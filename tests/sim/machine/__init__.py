"""Tests of `sim/machine`."""
