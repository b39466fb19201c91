"""Tests of `boards/pinout`."""
