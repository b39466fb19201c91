"""Tests of `sim/demo`."""
