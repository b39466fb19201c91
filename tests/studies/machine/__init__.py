"""Tests of `studies/machine`."""
