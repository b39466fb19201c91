"""What every FIFO promises, watched from outside."""

from amaranth.hdl import Assert, Signal

__all__ = ["watch_fifo"]


def watch_fifo(m, spec, *, name, depth, push, pop, first_in, first_out, valid, patience, more=False):
    """Asserts that a FIFO loses, doubles, swaps and invents nothing.

    One item, any one, is followed: when it enters, it is known how many stand before it; each that
    leaves makes it one less; then it must leave itself, as it was. Since any item may be the one,
    this is about all of them.

    Parameters
    ----------
    push, pop : an item enters, leaves, at the next edge.
    first_in, first_out : the item that enters, that leaves.
    valid : there is one to leave.
    patience : clocks an item that is alone may take from one side to the other; None for any number.

    Returns
    -------
    count : items inside, the reference for levels; with ``more`` also whether one is followed, how many stand
        before it, and the item.
    """
    choose = spec.free(1, f"{name}_choose")
    count = Signal(range(depth + 2), name=f"{name}_count")
    followed = Signal(name=f"{name}_followed")
    before = Signal(range(depth + 2), name=f"{name}_before")
    item = Signal.like(first_in, name=f"{name}_item")
    m.d.sync += count.eq(count + push - pop)
    with m.If(choose & push & ~followed):
        m.d.sync += [followed.eq(1), before.eq(count - pop), item.eq(first_in)]
    with m.If(followed & pop):
        m.d.sync += before.eq(before - 1)
        with m.If(before == 0):
            m.d.sync += followed.eq(0)
    m.d.comb += [
        Assert(count <= depth, "holds no more than its depth"),
        Assert(~(pop & (count == 0)), "gives nothing it has not got"),
        Assert(~(followed & valid & (before == 0)) | (first_out == item), "gives items as they came, in their order"),
    ]
    if patience is not None:
        late = Signal(range(patience + 2), name=f"{name}_late")
        with m.If(valid | (count == 0)):
            m.d.sync += late.eq(0)
        with m.Else():
            m.d.sync += late.eq(late + 1)
        m.d.comb += Assert(late <= patience, "keeps nothing back")
    return (count, followed, before, item) if more else count
