"""Lines about items that make no sense or were rejected, and the likely cause; at the end of ``sim``, ``record`` and
``decode``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from hypermon.host.analysis.junk import find_junk, lengths_of
from hypermon.host.analysis.rejects import THRESHOLDS, Rejecting, rejecting
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import InputError
from hypermon.host.run import Run
from hypermon.host.text.printable import printable

if TYPE_CHECKING:
    from hypermon.host.device.device import Device, Settings

__all__ = ["complain_of_junk", "complain_of_rejects"]

_SERIAL = "likely a wrong active edge (--edge), a wrong rate (--front-rate spi=HZ), or another device's clock"
_UART = "likely a wrong rate (--front-rate), or a line that is inverted or not connected"
#: Likely causes, by how a node is wired.
_REJECTED = {"two_wire": _SERIAL, "selected": _SERIAL, "uart": _UART,
             "swo": f"{_UART}, or a trace port whose formatter is on (FFCR, 0xe0040304, must be 0x100)"}


def complain_of_junk(run: Run, recorded: "tuple[Device, Settings] | None" = None) -> dict[str, Any] | None:
    """Prints one line on stderr if a large share of a RUN's items, or of the items of a node, makes no sense.

    Parameters
    ----------
    recorded : the board that has just recorded the RUN, and how. If it has played a stimulus, the line names the
        settings with which most of it makes sense. None: the RUN's tables are read.

    Returns
    -------
    the counts of :class:`.junk.Junk`; None if the RUN has no items of several nibbles.
    """
    try:
        junk = find_junk(run, decoded=recorded is None)
    except InputError:
        if recorded is None:
            raise
        return None     # blocks out of order, of which `decode` makes tables
    if junk is None:
        return None
    if junk.high:
        hint = None if recorded is None else _hint(run, *recorded)
        click.echo(printable(f"{run.given}: {junk.as_text()}: {hint or _causes(run, junk.some)}"), err=True)
    return junk.as_dict()


def _causes(run: Run, some: bool) -> str:
    """``some`` : of some nodes only."""
    fronts = run.info.identity.get("fronts") or ("port",)
    causes = ("likely a wrong rate (--front-rate) or --mode" if {*fronts} <= {"uart", "swo"} else
              "likely a data wire of that node that is loose or exchanged, or a wrong --edge, --sample or --mode"
              if some else
              "likely a wrong --edge, --sample or --mode, or data wires in another order")
    return causes + (", or the dictionary of another program" if kept_dictionary(run) is not None else "")


def _hint(run: Run, device: "Device", settings: "Settings") -> str | None:
    played, dictionary = device.link.played, kept_dictionary(run)
    if played is None:
        return None
    return played.other_reading(
        run.info.item_modes, clock_hz=run.info.clock_hz, port_bits=run.info.port_bits,
        timeout_ps=run.info.item_timeout_clocks * 10**12 // run.info.clock_hz, rising=settings.rising,
        falling=settings.falling, after=settings.after, lengths=None if dictionary is None else lengths_of(dictionary))


def complain_of_rejects(run: Run, items: Sequence[int], rejected: Sequence[int],
                        device: "Device | None" = None) -> dict[str, Any]:
    """Prints a line on stderr for each node without a port of whose bytes a large share was rejected.

    Parameters
    ----------
    items, rejected : of each node, as :func:`.rejects.rejecting` takes them.
    device : the board that has just recorded the RUN. If it has played a stimulus, the line says what is wrong with it.

    Returns
    -------
    the ``nodes``, and the ``thresholds``.
    """
    found = rejecting(run.info, items, rejected)
    for one in found:
        click.echo(printable(f"{run.given}: {one.as_text()}: {_reason(one, device)}"), err=True)
    return {"nodes": [one.node for one in found], "thresholds": THRESHOLDS}


def _reason(one: Rejecting, device: "Device | None") -> str:
    played = None if device is None else device.link.played
    said = None if played is None or one.bit_ps is None else played.other_wire(one.node, one.front, one.bit_ps)
    return said or _REJECTED[one.front]
