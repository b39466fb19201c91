"""Tests of `sim/stimulus`."""
