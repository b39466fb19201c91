"""Tests of `boards/model`."""
