"""Tests of `sim/virtual`."""
