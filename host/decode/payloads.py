"""Payloads of COMPACT blocks for the ledger, and why it leaves some out."""

from collections.abc import Collection, Sequence

from hypermon.host.blocks.blocks import Block
from hypermon.host.blocks.compact import Decoded, Payloads
from hypermon.host.blocks.times import PS_MAX

__all__ = ["BEYOND", "payloads_of", "reasons_of"]

#: Why a block with a time that is not valid is left out.
BEYOND = "a time beyond 2^63 ps"


def payloads_of(batch: Sequence[Block], stamp_max: int) -> Payloads | None:
    """The payloads of COMPACT blocks; None if a block's time is later than the last valid stamp."""
    payloads = Payloads.joined([
        Payloads.of([block.payload], [min(block.time, PS_MAX)]) if block.payloads is None else block.payloads
        for block in batch])
    return payloads if payloads.times.min() >= 0 and payloads.times.max() <= stamp_max else None


def reasons_of(decoded: Decoded, beyond: Collection[int], last: tuple[int, int], stamp_max: int) -> dict[int, str]:
    """The blocks of single nibbles that no board can have sent, and why.

    Parameters
    ----------
    beyond : those whose time is not valid.
    last : window and node of the last item before them.
    """
    reasons = {fault.which: fault.reason for fault in decoded.faults} | dict.fromkeys(beyond, BEYOND)
    for k, span in enumerate(decoded.spans):
        if span is None or k in reasons:
            continue
        if span.first <= last:
            reasons[k] = "items that do not rise"
        elif span.last[0] > stamp_max:
            reasons[k] = BEYOND
        else:
            last = span.last
    return reasons
