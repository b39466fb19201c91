"""Tests of `sim/ipsc`."""
