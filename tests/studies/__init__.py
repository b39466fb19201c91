"""Tests of `studies`."""
