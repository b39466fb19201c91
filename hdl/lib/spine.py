"""Clock domain of the stages whose contents a host reset discards."""

from amaranth.hdl import DomainRenamer

__all__ = ["in_spine"]

#: Puts a stage into the spine: same clock as ``sync``, with the host's reset (and the power-up reset). A reset
#: discards everything queued there. The blocker is outside the spine, because it finishes its block.
in_spine = DomainRenamer("spine")
