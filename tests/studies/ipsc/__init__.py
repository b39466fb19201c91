"""Tests of `studies/ipsc`."""
