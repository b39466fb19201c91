"""Regeneration boards: each pin is used once, and a clock that is too slow gives no bitstream."""

import pytest
from hypermon.boards.toolchain.regeneration import _NAME, FRONTS, MODES, REGENERATION_BOARDS, build, main
from hypermon.hdl.layout import FRONT_WIRES, Front


@pytest.mark.parametrize("name", sorted(REGENERATION_BOARDS))
def test_pins(name):
    board = REGENERATION_BOARDS[name]
    pins = [*(pin for node in board.nodes for pin in node), board.reference, *board.line, board.both]
    assert len(set(pins)) == len(pins) == (44 if name == "hx1k" else 24)
    assert {len(node) for node in board.nodes} == {5}
    assert set(board.fronted) == set(FRONTS.values()) - {Front.PORT}
    for front in FRONTS.values():
        wires = board.wires(front)
        used = [pin for node in wires for pin in node]
        assert {len(node) for node in wires} == {FRONT_WIRES[front]}
        assert used == [pin for node in board.nodes for pin in node][:len(used)]


@pytest.mark.parametrize(("options", "message"), [
    (["--front", "uart", "--mode", "word"], "--front uart: its nodes are in event mode, not in word mode"),
    (["--front", "uart", "--rate", "20000000"], "receives at 763 to 12500000 baud, not 20000000"),
    (["--front", "selected", "--rate", "60000000"], "receives clocks of"),
    (["--front", "swo"], "invalid choice: 'swo'"),
])
def test_refused_options(options, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["icestick", str(tmp_path), *options])
    assert message in f"{ended.value} {capsys.readouterr().err}"
    assert not list(tmp_path.rglob("*.bin"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(REGENERATION_BOARDS))
def test_builds(name, mode, tmp_path):
    _builds(name, tmp_path, mode=mode)


@pytest.mark.slow
@pytest.mark.parametrize("front", [front for front in FRONTS.values() if front is not Front.PORT],
                         ids=lambda front: front.name)
@pytest.mark.parametrize("name", sorted(REGENERATION_BOARDS))
def test_builds_with_front_ends(name, front, tmp_path):
    _builds(name, tmp_path, front=front)


def _builds(name, tmp_path, **how):
    built = build(REGENERATION_BOARDS[name], tmp_path, **how)
    reached, asked = built["mhz"]
    assert reached >= asked
    assert (tmp_path / f"{_NAME}.bin").stat().st_size > 10_000
    # At twice the clock, the timers of UARTs may need more cells than there are.
    with pytest.raises(SystemExit, match=r"MHz, not 200|the tools failed"):
        build(REGENERATION_BOARDS[name], tmp_path / "fast", reference_hz=200_000_000, **how)
    assert not (tmp_path / "fast" / f"{_NAME}.bin").exists()
