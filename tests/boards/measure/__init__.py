"""Tests of `boards/measure`."""
