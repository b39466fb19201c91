"""Tests of `sim/virtual/pcie`."""
