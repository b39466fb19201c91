"""Links: the receivers of all regeneration boards of a board, as one source of ports."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_NODES, PORT_BITS
from .link_losses import loss_layout
from .receiver import Receiver

__all__ = ["LINK_TIME_BITS", "Links", "link_account"]

#: Bits of the times of losses: windows of one clock at 100 MHz wrap after 32 days.
LINK_TIME_BITS = 48


def link_account() -> wiring.Signature:
    """Signature of a link's account, as seen from the link; see :class:`~.link_losses.LinkLosses`.

    locked : frames come.
    losses, judged, which, anew, based : see :class:`~.link_losses.LinkLosses`, where ``losses`` is ``o``.
    """
    return wiring.Signature({
        "locked": Out(1), "losses": Out(stream.Signature(loss_layout(LINK_TIME_BITS))),
        "judged": Out(1), "which": Out(range(2 * LINK_NODES)), "anew": Out(1),
        "based": Out(1),
    })


class Links(wiring.Component):
    """A receiver for each group of eight nodes.

    The strobes that it re-creates change their level with each item, whatever edges were active at the nodes. Data are
    sampled before the edge.

    Parameters
    ----------
    links : number of groups.
    pad_stage : the consumer's synchronizers have their first flip-flop themselves; else it is here, so that the latency
        is the same.
    ram : kind of memory, see :class:`~..lib.ram.Ram`.

    Members
    -------
    samples : four per link and clock, see :class:`~.line_aligner.LineAligner`.
    strobe, data, further, torn : levels, as at a pad; see :class:`~.replay.Replay`.
    now : number of the window.
    clear, enable : reset in progress; capture is enabled.
    account : see :func:`link_account`.
    """

    def __init__(self, links: int, pad_stage: bool = True, ram: str = "portable"):
        self.links, self.pad_stage, self.ram = links, pad_stage, ram
        super().__init__({
            "samples": In(4 * links), "now": In(64), "clear": In(1), "enable": In(1),
            "strobe": Out(LINK_NODES * links), "data": Out(PORT_BITS * LINK_NODES * links),
            "further": Out(LINK_NODES * links), "torn": Out(LINK_NODES * links),
            **{f"account{k}": Out(link_account()) for k in range(links)},
        })

    def elaborate(self, platform):
        m = Module()
        levels = {name: [] for name in ("strobe", "data", "further", "torn")}
        for k in range(self.links):
            m.submodules[f"receiver{k}"] = receiver = Receiver(self.ram, LINK_TIME_BITS)
            account = getattr(self, f"account{k}")
            wiring.connect(m, receiver.losses, wiring.flipped(account.losses))
            m.d.comb += [
                receiver.samples.eq(self.samples.word_select(k, 4)), receiver.toggles.eq(-1),
                receiver.time.eq(self.now), receiver.clear.eq(self.clear),
                receiver.enable.eq(self.enable),
                account.locked.eq(receiver.locked), account.judged.eq(receiver.judged),
                account.which.eq(receiver.which), account.anew.eq(receiver.anew),
                account.based.eq(receiver.based),
            ]
            for name, its in levels.items():
                its.append(getattr(receiver, name))
        levels = Cat(*levels.values())
        if not self.pad_stage:
            pads = Signal.like(levels, name="pads")
            m.d.sync += pads.eq(levels)
            levels = pads
        m.d.comb += Cat(self.strobe, self.data, self.further, self.torn).eq(levels)
        return m
