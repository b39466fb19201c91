"""The spine: the stages whose contents a reset of the host discards."""

from amaranth.hdl import DomainRenamer

__all__ = ["in_spine"]

#: Puts a stage into the spine: the same clock as ``sync``, with the reset of the host (and power-up's). What is queued
#: there is discarded by a reset; the blocker is outside, because it finishes its block.
in_spine = DomainRenamer("spine")
