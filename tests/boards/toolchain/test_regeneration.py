"""Regeneration boards: each pin is used once, and a clock that is too slow gives no bitstream."""

import pytest
from hypermon.boards.toolchain.regeneration import _NAME, REGENERATION_BOARDS, build


@pytest.mark.parametrize("name", sorted(REGENERATION_BOARDS))
def test_pins(name):
    board = REGENERATION_BOARDS[name]
    pins = [*(pin for node in board.nodes for pin in node), board.reference, *board.line, board.both]
    assert len(set(pins)) == len(pins) == 24
    assert {len(node) for node in board.nodes} == {5}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REGENERATION_BOARDS))
def test_builds(name, tmp_path):
    built = build(REGENERATION_BOARDS[name], tmp_path)
    reached, asked = built["mhz"]
    assert reached >= asked
    assert (tmp_path / f"{_NAME}.bin").stat().st_size > 10_000
    with pytest.raises(SystemExit, match="MHz, not 200"):
        build(REGENERATION_BOARDS[name], tmp_path / "fast", reference_hz=200_000_000)
    assert not (tmp_path / "fast" / f"{_NAME}.bin").exists()
