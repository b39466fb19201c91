"""The tables of everything that crosses the wire."""

import pytest
from hypermon.hdl.layout import (
    BEAT_BYTES,
    BLOCK_HEADER,
    BLOCK_TRAILER,
    BURST_BASE,
    CENSUS_BOARD,
    CENSUS_LINK,
    CENSUS_NODE,
    COUNTERS_BASE,
    COUNTERS_STRIDE,
    LOSS_RECORD,
    NODES_MAX,
    REGISTERS,
    Extra,
    Geometry,
    Sink,
    Window,
    frame_bytes,
)


def test_records_have_the_sizes_that_were_fixed():
    sizes = [r.bytes for r in (BLOCK_HEADER, BLOCK_TRAILER, LOSS_RECORD, CENSUS_BOARD, CENSUS_NODE)]
    assert sizes == [32, 16, 32, 32, 64]
    assert [frame_bytes(n) for n in (1, 16, 17, 32)] == [16, 16, 24, 24]


@pytest.mark.parametrize("record", [BLOCK_HEADER, BLOCK_TRAILER, LOSS_RECORD, CENSUS_BOARD, CENSUS_NODE, CENSUS_LINK])
def test_records_pack_and_unpack(record):
    values = {f.name: (k * 0x1234567 + 1) % (1 << f.bits) for k, f in enumerate(record.fields)}
    assert record.unpack(b"xy" + record.pack(**values), 2) == values
    assert [at for at, _ in record.offsets()][-1] + record.fields[-1].bits // 8 == record.bytes
    with pytest.raises(TypeError, match="nothing"):
        record.pack(nothing=1)


def test_registers_do_not_overlap():
    offsets = [r.offset for r in REGISTERS.values()]
    assert len(set(offsets)) == len(offsets)
    assert all(o % 4 == 0 for o in offsets)
    assert max(offsets) < COUNTERS_BASE
    assert COUNTERS_BASE + NODES_MAX * COUNTERS_STRIDE <= BURST_BASE
    classic = {"CONTROL": 0, "STATUS": 4, "FRAME_COUNT": 8, "FRAME_FIFO": 0xc, "FRAME_POS": 0x10}
    assert {name: REGISTERS[name].offset for name in classic} == classic


@pytest.mark.parametrize(("values", "named"), [
    ({"nodes": 0}, "0"), ({"nodes": 33}, "33"), ({"clock_hz": 33_000_001}, "33000001"), ({"clock_hz": -5}, "-5"),
    ({"node_depth": 48}, "48"), ({"node_depth": 2}, "2"), ({"vector_depth": 1000}, "1000"),
    ({"frame_depth": 65536}, "65536"), ({"vector_depth": 128}, "128"), ({"sinks": ()}, r"\(\)"),
    ({"store_depth": 8}, "8"), ({"store_depth": 48}, "48"), ({"store_depth": 1536}, "1536"),
    ({"store_depth": 33792}, "33792"), ({"external_depth": 512}, "512"), ({"external_depth": 3072}, "3072"),
    ({"port_bits": 5, "sinks": (Sink.EXTENDED,)}, "5"), ({"port_bits": 8}, "CLASSIC"),
    ({"port_bits": 8, "sinks": tuple(Sink)}, "CLASSIC"), ({"phases": 2}, "CLASSIC"), ({"phases": 4}, "CLASSIC"),
    ({"phases": 3, "sinks": tuple(Sink)}, "1, 2 or 4, not 3"),
    ({"nodes": 8, "links": 2}, "0..1, .* not 2"), ({"links": -1}, "-1"), ({"links": 1, "beat_bytes": 4}, "16 bytes"),
    ({"links": 1, "beat_bytes": 2}, "16 bytes"), ({"links": 1, "port_bits": 8, "sinks": (Sink.EXTENDED,)}, "4 bits"),
    ({"extras": (Extra.ECHO,)}, "ECHO"),
    ({"extras": (Extra.PPS,), "sinks": tuple(Sink), "beat_bytes": 4}, "marks of pins need beats of 16 bytes, not 4"),
])
def test_bad_geometry_is_named(values, named):
    with pytest.raises(ValueError, match=named):
        Geometry(**values)


def test_the_extended_board_has_the_buffers_that_are_asked_for():
    geometry = Geometry.extended(5, 50_000_000, external_depth=4096)
    assert (geometry.nodes, geometry.clock_hz, geometry.external_depth) == (5, 50_000_000, 4096)
    assert set(geometry.sinks) == set(Sink)
    assert Geometry.extended(port_bits=8).sinks == (Sink.EXTENDED,)
    # 25 ms of a nibble a microsecond, at 2.2 bytes each, and heads.
    assert BEAT_BYTES * (geometry.store_depth + geometry.compact_depth) > 25_000 * 2.3


@pytest.mark.parametrize("clock_hz", [5_000_000, 100_000_000, 185_000_000])
def test_windows_are_whole_clocks(clock_hz):
    geometry = Geometry(clock_hz=clock_hz)
    for window in Window:
        if window is not Window.CLOCK:
            assert geometry.window_clocks(window) * 10**9 == window.ns * clock_hz
    assert geometry.window_clocks(Window.CLOCK) == 1
