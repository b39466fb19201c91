"""Row groups encoded apart and joined: every reader finds the same table, however many cores wrote it."""

import random

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.tables import parquet, payload_dictionary
from hypermon.host.tables.encoding import encoded
from hypermon.host.tables.parquet import EVENT_SCHEMA, EventWriter, event_schema
from hypermon.host.tables.payload_dictionary import numbered
from hypermon.host.tables.row_groups import RowGroupFile

EVENTS = event_schema(ItemModes(events=15), 4)


def nibbles(rng, count, gaps):
    times = np.cumsum(rng.choice(gaps, count)) * 10_000
    return pa.table([times, rng.integers(0, 16, count, np.int16), rng.integers(0, 16, count, np.uint8)],
                    schema=EVENT_SCHEMA)


def events(rng, count, payloads):
    return pa.table([np.cumsum(rng.integers(1, 99, count)), rng.integers(0, 4, count, np.int16),
                     pa.array(rng.integers(0, 9, count, np.uint8), mask=rng.random(count) < 0.1),
                     pa.array([payloads(k) for k in range(count)], pa.binary()), rng.random(count) < 0.1],
                    schema=EVENTS)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("kind", ["nibbles", "events"])
def test_every_reader_finds_the_table(tmp_path, monkeypatch, cores, kind):
    monkeypatch.setattr(parquet, "_GROUP", 1000)
    monkeypatch.setattr(parquet, "_GROUPS_PER_FILE", 20)
    rng = np.random.default_rng(3)
    table = (nibbles(rng, 30_500, range(1, 9)) if kind == "nibbles" else
             events(rng, 30_500, lambda k: rng.bytes(k % 15) if k % 9 else b""))
    with EventWriter(tmp_path / "events", table.schema, cores) as writer:
        for at in range(0, len(table), 700):
            writer.add(table.slice(at, 700))
    files = sorted((tmp_path / "events").iterdir())
    assert [path.name for path in files] == ["part-00000.parquet", "part-00001.parquet"]
    metadata = [pq.read_metadata(path) for path in files]
    assert [(one.num_row_groups, one.num_rows) for one in metadata] == [(20, 20_000), (11, 10_500)]
    found = pa.concat_tables(map(pq.read_table, files))
    assert found.schema.equals(table.schema, check_metadata=True)
    assert found.equals(table)
    # Any row group, without those before it.
    assert pq.ParquetFile(files[0]).read_row_group(17).equals(table.slice(17_000, 1000))
    assert duckdb.sql(f"from '{tmp_path}/events/*.parquet' order by time_ps").to_arrow_table().to_pylist() == \
        table.to_pylist()
    assert polars.read_parquet(files).to_arrow().to_pylist() == table.to_pylist()


def test_the_bytes_do_not_depend_on_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP", 500)
    table = nibbles(np.random.default_rng(1), 5200, [1, 2, 500])
    for cores in (1, 2, 4):
        with EventWriter(tmp_path / str(cores), cores=cores) as writer:
            writer.add(table)
    assert len({(tmp_path / str(cores) / "part-00000.parquet").read_bytes() for cores in (1, 2, 4)}) == 1


def test_an_error_of_an_encoder_is_raised_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP", 10)

    def failing(table):
        raise OSError("no space")

    monkeypatch.setattr(parquet, "encoded", failing)
    with pytest.raises(OSError, match="no space"), EventWriter(tmp_path / "events", cores=2) as writer:
        writer.add(nibbles(np.random.default_rng(1), 100, [1]))
    assert not list((tmp_path / "events").glob("*.parquet"))


def test_a_footer_of_another_kind_is_refused(tmp_path):
    sink = pa.BufferOutputStream()
    pq.write_table(nibbles(np.random.default_rng(1), 10, [1]), sink)
    data = bytearray(sink.getvalue())
    size = int.from_bytes(data[-8:-4], "little")
    data[-8 - size] = 0x1b      # the version as a map
    with open(tmp_path / "file", "wb") as file, pytest.raises(ValueError, match="a value of type 11"):
        RowGroupFile(file).add(memoryview(bytes(data)))


def encodings(table):
    group = pq.ParquetFile(pa.BufferReader(encoded(table))).metadata.row_group(0)
    return {group.column(k).path_in_schema: set(group.column(k).encodings) for k in range(group.num_columns)}


def test_times_are_encoded_as_their_gaps_demand():
    rng = np.random.default_rng(7)
    for gaps, expected in ((np.tile([3, 3, 3, 2000, 7, 7], 20_000), "DELTA_BINARY_PACKED"),
                           (np.rint(rng.exponential(100, 120_000)).astype(int) + 1, "BYTE_STREAM_SPLIT")):
        times = pa.array(np.cumsum(gaps * 800_000))
        table = nibbles(rng, 120_000, [1]).set_column(0, EVENT_SCHEMA.field(0), times)
        assert expected in encodings(table)["time_ps"]
    assert "BYTE_STREAM_SPLIT" in encodings(table)["node"]


def test_the_choice_is_not_larger_than_what_it_replaces():
    rng = np.random.default_rng(7)
    for gaps in ([3], [3, 2000], range(1, 20), range(1, 2000)):
        table = nibbles(rng, 50_000, gaps)
        chosen = len(encoded(table))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, use_dictionary=["node", "nibble"], compression="zstd", compression_level=1,
                       column_encoding={"time_ps": "DELTA_BINARY_PACKED"})
        assert chosen < 1.03 * sink.getvalue().size + 1000


needs_c = pytest.mark.skipif(payload_dictionary._DICTIONARY is None, reason="installed without a C compiler")


@needs_c
@pytest.mark.parametrize("seed", range(6))
def test_payloads_are_numbered(seed):
    rng = random.Random(seed)
    few = [rng.randbytes(rng.randint(0, 16)) for _ in range(rng.choice((1, 50, 5000)))]
    few += [one + b"\0" for one in few[:20] if len(one) < 16]
    chunks = [pa.array(rng.choices(few, k=rng.choice((0, 1, 3, 2000))), pa.binary()) for _ in range(4)]
    chunks.append(chunks[0][1:])        # an offset
    payloads = pa.chunked_array(chunks, pa.binary())
    found = numbered(payloads)
    assert found.cast(pa.binary()).equals(payloads)
    assert len(found.chunk(0).dictionary) == len(set(payloads.to_pylist()))


@needs_c
def test_payloads_that_cannot_be_numbered_are_left_as_they_are(monkeypatch):
    assert numbered(pa.chunked_array([[b"a", None]], pa.binary())) is None
    assert numbered(pa.chunked_array([[b"a", bytes(17)]], pa.binary())) is None
    monkeypatch.setattr(payload_dictionary, "_MOST", 3)
    assert numbered(pa.chunked_array([[b"a", b"b", b"c", b"a"]], pa.binary())) is not None
    assert numbered(pa.chunked_array([[b"a", b"b", b"c", b"d"]], pa.binary())) is None


@needs_c
def test_tables_with_and_without_numbers_are_the_same(monkeypatch):
    table = events(np.random.default_rng(2), 2000, lambda k: b"ab" * (k % 5))
    with_c = pq.read_table(pa.BufferReader(encoded(table)))
    monkeypatch.setattr(payload_dictionary, "_DICTIONARY", None)
    assert pq.read_table(pa.BufferReader(encoded(table))).equals(with_c)
    assert with_c.equals(table)
