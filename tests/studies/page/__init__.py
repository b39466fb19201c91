"""Tests of `studies/page`."""
