"""Tests of `sim/virtual/memory`."""
