"""Tests of `host/diagnose`."""
