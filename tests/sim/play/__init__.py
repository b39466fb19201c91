"""Tests of `sim/play`."""
