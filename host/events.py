"""Events of several nibbles, framed by the nodes' software: ``RUN/framed.parquet``."""

import os

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.hdl.layout import PORT_BITS
from hypermon.host import framing
from hypermon.host.errors import InputError
from hypermon.host.naming import FRAMED, kept_dictionary, name_table
from hypermon.host.recording import Run

__all__ = ["FRAMED", "framed_events"]

def framed_events(run: Run) -> pa.Table:
    """Reads event framing out of a run's nibbles, and keeps the result in the RUN.

    Nodes in word or event mode are left out.

    Returns
    -------
    ``time_ps``, ``node``, ``event``, ``payload``, ``aborted``; see :func:`.framing.frame_events`. Behind them
    what the RUN's dictionary adds, if it has one; see :func:`.fields.decode_fields`.

    Raises
    ------
    InputError
        if no node was in nibble mode, or its ports have 8 bits.
    """
    nibbles = run.events()
    if "nibble" not in nibbles.column_names:
        raise InputError(run.path, None, "no node of this run was in nibble mode, so there is nothing to frame")
    if nibbles.num_columns > 3:
        nibbles = nibbles.filter(pc.is_valid(nibbles["nibble"]))
    if run.info.port_bits != PORT_BITS:
        raise InputError(run.path, None, "its ports have 8 bits, and only nibbles are framed here: record it with "
                                         "--mode event")
    table = framing.frame_events(nibbles["time_ps"].to_numpy(), nibbles["node"].to_numpy(),
                                 nibbles["nibble"].to_numpy(), loss=run.loss())
    dictionary = kept_dictionary(run)
    if dictionary is not None:
        table = name_table(table, dictionary)
    aside = run.path / f".{FRAMED}.new"
    pq.write_table(table, aside, compression="zstd")
    os.replace(aside, run.path / FRAMED)
    return table
