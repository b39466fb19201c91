"""Tests of `host/wire`."""
