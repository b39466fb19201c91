"""The tables that bind registers to members: complete, without a name in two of them, and writable as the map says."""

import inspect

import pytest
from amaranth.hdl import Module, Signal
from hypermon.hdl.control import bindings as bound_in
from hypermon.hdl.control.bindings import Binding, bindings, present
from hypermon.hdl.control.registers import Registers
from hypermon.hdl.layout import REGISTERS, Extra, Front, Geometry, Option, Sink

SMALL = {"node_depth": 16, "vector_depth": 64, "frame_depth": 16}
BOARDS = {
    "classic": Geometry(4, sinks=(Sink.CLASSIC,), **SMALL),
    "both": Geometry(4, sinks=tuple(Sink), **SMALL),
    "phases": Geometry(2, sinks=(Sink.EXTENDED,), phases=4, **SMALL),
    "links": Geometry(9, sinks=tuple(Sink), links=1, **SMALL),
    "extras": Geometry(2, sinks=tuple(Sink), extras=tuple(Extra), **SMALL),
    "fronts": Geometry(3, sinks=(Sink.EXTENDED,), fronts=(Front.PORT, Front.TWO_WIRE, Front.UART), **SMALL),
}
HOST = ("MODE", "WORD_NODES", "EVENT_NODES", "GLITCH", "RATE_LIMIT", "SYNC", "own", "PHASES")
#: What a write of these starts is no setting; see `Registers`.
STARTS = {"CONTROL", "LATCH", "EVENT_MASK", "EMULATOR_REPLAY"}


def given(name: str) -> dict[str, object]:
    """Arguments for the tables of a board, which is not elaborated; Amaranth is not to complain of that."""
    registers, module = Registers(BOARDS[name]), Module()
    registers._MustUse__silence = module._MustUse__silence = True
    return {"registers": registers, "m": module, "host": {setting: Signal(name=setting) for setting in HOST},
            "flush": Signal(32), "index": Signal(11)}


def of(name: str) -> dict[str, Binding]:
    return bindings(**given(name))


@pytest.mark.parametrize("name", BOARDS)
def test_each_register_that_can_be_read_is_bound_and_only_those_that_can_be_written_set_something(name):
    bound, there = of(name), set(present(BOARDS[name]))
    assert set(bound) == {one for one in there if "R" in REGISTERS[one].access} - {"FRAME_FIFO"}
    setting = [one for one, binding in bound.items() if binding.sets is not None]
    assert [one for one in setting if "W" not in REGISTERS[one].access] == []


def test_a_write_has_no_effect_where_the_board_has_no_such_setting():
    written = {name: {one for one in present(board) if "W" in REGISTERS[one].access} - STARTS
               for name, board in BOARDS.items()}
    ineffective = {name: {one for one in written[name] if of(name)[one].sets is None} for name in BOARDS}
    extended = {"WORD_NODES", "EVENT_NODES", "ITEM_TIMEOUT", "TRIGGER_START", "TRIGGER_STOP", "PRETRIGGER",
                "REDUCTION_INDEX", "MODE", "GLITCH", "RATE_LIMIT", "NIBBLE_MASK"}
    assert extended <= ineffective["classic"]
    assert not extended & ineffective["both"]
    assert extended & ineffective["phases"] == {"MODE"}, "one sink: nothing to choose"
    assert "TRIGGER_PIN" in ineffective["both"]
    assert "TRIGGER_PIN" not in ineffective["extras"]
    assert not BOARDS["both"].has(Option.REDUCTION) or of("both")["REDUCTION_INDEX"].sets is not None


def test_no_register_is_in_two_tables():
    arguments = given("extras")
    tables = [table(*(arguments[name] for name in inspect.signature(table).parameters))
              for name, table in vars(bound_in).items() if name.startswith("_of_")]
    assert len(tables) == 5
    names = [name for table in tables for name in table]
    assert len(set(names)) == len(names)
