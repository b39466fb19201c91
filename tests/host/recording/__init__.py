"""Tests of `host/recording`."""
