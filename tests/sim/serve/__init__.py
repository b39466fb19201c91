"""Tests of `sim/serve`."""
