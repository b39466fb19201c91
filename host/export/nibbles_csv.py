"""``csv``: the nibbles and bytes of a run."""

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.export.format import Format, refuse_other_modes
from hypermon.host.export.items import stored_batches, write_rows
from hypermon.host.export.sinks import sink
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["CSV"]

#: The modes of nodes each of whose bytes is an item.
_SINGLE = (ItemMode.BYTE, ItemMode.LINE)


def _refuse(run: Run, selection: Selection) -> None:
    run.refuse_without_events()
    refuse_other_modes(run, (ItemMode.NIBBLE, *_SINGLE))


def _write(run: Run, out: str, selection: Selection) -> None:
    """``time_ps,node,nibble``, decimal: by time, ties by node, then by arrival, as they are stored. The third column
    has the byte of a node in byte mode.

    Nodes whose items are words or events are left out.
    """
    run.decode()
    modes = run.info.item_modes
    single = pa.array([node for node in range(run.info.nodes) if modes.said(node) in _SINGLE], pa.int16())
    with sink(out) as file:
        file.write(b"time_ps,node,nibble\n")
        batches = stored_batches(run, selection)
        write_rows(file, (_single(batch, single) if batch.num_columns > 3 else batch for batch in batches))


def _single(batch: pa.RecordBatch, nodes: pa.Array) -> pa.RecordBatch:
    """The nibbles of a batch, and the whole bytes of these nodes, whose items are events of one byte."""
    columns = [batch[name] for name in ("nibble",) if name in batch.schema.names]
    if len(nodes):
        own = pc.and_(pc.is_in(batch["node"], nodes), pc.invert(batch["aborted"]))
        columns.append(pc.if_else(own, batch["event"], pa.scalar(None, pa.uint8())))
    values = pc.coalesce(*columns)
    return pa.RecordBatch.from_arrays([batch["time_ps"], batch["node"], values],
                                      names=["time_ps", "node", "nibble"]).filter(pc.is_valid(values))


CSV = Format("csv", _write, refuse=_refuse)
