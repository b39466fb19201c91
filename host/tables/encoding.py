"""How events are encoded in Parquet, chosen by measurement (docs/performance.md)."""

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.tables.payload_dictionary import numbered

__all__ = ["encoded"]

#: Rows of which both encodings of times are tried.
_SAMPLE = 1 << 14
#: The share by which times may be larger in the faster encoding.
_WORSE = 1.02
_DELTA, _SPLIT = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
#: Numbers below 256 in columns of 32 bits: three of their four streams of bytes are zeros.
_SMALL = ("node", "nibble", "event")
_LEVEL = 1


def encoded(table: pa.Table) -> memoryview:
    """A Parquet file of one row group of a run's events, with all columns of the table."""
    column = table.schema.get_field_index("payload")
    payloads = numbered(table.column(column)) if column >= 0 else None
    if payloads is not None:
        table = table.set_column(column, pa.field("payload", payloads.type), payloads)
    return _written(table, _times(table))


def _times(table: pa.Table) -> str:
    """The encoding of the times.

    Gaps between events of programs recur, and packed gaps compress to half. Random gaps do not compress; then splitting
    into bytes gives the same size in a third of the time.
    """
    sample = table.slice(max(len(table) - _SAMPLE, 0) // 2, _SAMPLE).select(["time_ps"])
    sizes = {encoding: len(_written(sample, encoding)) for encoding in (_DELTA, _SPLIT)}
    return _SPLIT if sizes[_SPLIT] <= _WORSE * sizes[_DELTA] else _DELTA


def _written(table: pa.Table, times: str) -> memoryview:
    names = table.schema.names
    sink = pa.BufferOutputStream()
    # Payloads are in no order, so bounds of them would help no reader. Without the schema of Arrow, numbered payloads
    # are read as what they are; the types of all columns follow from those of Parquet.
    with pq.ParquetWriter(sink, table.schema, use_dictionary=["payload"] if "payload" in names else False,
                          column_encoding={"time_ps": times, **{name: _SPLIT for name in _SMALL if name in names}},
                          write_statistics=[name for name in names if name != "payload"],
                          compression="zstd", compression_level=_LEVEL, store_schema=False) as writer:
        writer.write_table(table, row_group_size=max(len(table), 1))
    return memoryview(sink.getvalue()).cast("B")
