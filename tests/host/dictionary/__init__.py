"""Tests of `host/dictionary`."""
