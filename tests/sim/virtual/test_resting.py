"""Parts of the board that rest: nothing changes in them meanwhile, and the stream is the same as when all are computed.
"""

import re

import numpy as np
import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.errors import HypermonError
from hypermon.sim.virtual import build, resting
from hypermon.sim.virtual.link import Rest, VirtualLink

from tests.sim.plain_host import once, play, write
from tests.sim.virtual.test_link import sparse, stimulus, strobes
from tests.sim.virtual.test_skips import configured, host, random_strobes

SMALL = Geometry(2, node_depth=4, vector_depth=16, frame_depth=4)

MODULES = """\
module hypermon(clk, data);
  input clk;
  always @(posedge clk)
    first <= data;
endmodule
module \\hypermon.capture.pbx (bus, clk);
  always @(posedge clk)
    second <= bus;
endmodule
module \\hypermon.capture.merge$17.gate (pulse, spine_clk);
  always @(posedge spine_clk)
    third <= pulse;
endmodule
module \\hypermon.capture.merge$17 (pulse, clk);
  always @(posedge clk)
    fourth <= pulse;
endmodule
module \\hypermon.capture.pbxes (bus, clk);
  always @(posedge clk)
    fifth <= bus;
endmodule
"""


def test_each_room_has_a_clock():
    """Of the modules in it, whatever number Amaranth gives them; all others keep theirs."""
    text, rooms = resting.in_rooms(MODULES)
    assert rooms == ("gate", "registers")
    clocks = re.findall(r"@\(posedge (\S+)\)\n +(\w+)", text)
    assert clocks == [("clk", "first"), ("hypermon.beat_registers", "second"), ("hypermon.beat_gate", "third"),
                      ("clk", "fourth"), ("clk", "fifth")]
    assert "module hypermon(beat_gate, beat_registers, clk, data);" in text
    assert text.count("  input beat_") == 2


def test_a_board_without_known_modules_has_no_rooms():
    text = MODULES.replace("hypermon.capture", "netlist")
    assert resting.in_rooms(text) == (text, ())


MODEL = """\
void Vboard___024root___eval_triggers_vec__act(Vboard___024root* vlSelf) {
    vlSelfRef.__Vtrigprevexpr___TOP__clk__0 = vlSelfRef.clk;
    vlSelfRef.__Vtrigprevexpr___TOP__beat_one__0
        = vlSelfRef.beat_one;
    vlSelfRef.__Vtrigprevexpr___TOP__beat_two__0 = vlSelfRef.beat_two;
}
void Vboard___024root___eval_ico(Vboard___024root* vlSelf) {
    vlSelfRef.pushed = vlSelfRef.push;
}
void Vboard___024root___nba_sequent__TOP__0(Vboard___024root* vlSelf) {
    if (vlSelfRef.pushed) {
        vlSelfRef.count[1U] = vlSelfRef.now;
    }
    vlSelfRef.out = (vlSelfRef.limit & vlSelfRef.table
                     [vlSelfRef.at]);
}
void Vboard___024root___eval_nba(Vboard___024root* vlSelf) {
    // Body
    if ((1ULL & vlSelfRef.__VnbaTriggered[0U])) {
        vlSelfRef.limit = (1U & vlSelfRef.limit);
        vlSelfRef.now = (1ULL + vlSelfRef.now);
    }
    if ((2ULL & vlSelfRef.__VnbaTriggered[0U])) {
        Vboard___024root___nba_sequent__TOP__0(vlSelf);
    }
    if ((0x0000000000000004ULL & vlSelfRef.__VnbaTriggered[0U])) {
        vlSelfRef.at = vlSelfRef.count[0U];
        VL_ADD_W(3, vlSelfRef.sum, vlSelfRef.sum, vlSelfRef.at);
    }
    if ((6ULL & vlSelfRef.__VnbaTriggered[0U])) {
        vlSelfRef.both = vlSelfRef.out;
    }
}
"""
HEADER = "VlUnpacked<CData/*0:0*/, 16> table; CData/*0:0*/ limit; CData/*0:0*/ pushed; QData/*63:0*/ now;\n"


def rests(tmp_path, text=MODEL, rooms=("one", "two")):
    (tmp_path / "Vboard___024root__0.cpp").write_text(text)
    (tmp_path / "Vboard___024root__0__Slow.cpp").write_text("vlSelfRef.slow = 1;")
    (tmp_path / "Vboard___024root.h").write_text(HEADER)
    return resting.rests(tmp_path, "Vboard", rooms)


def test_a_room_wakes_for_what_it_reads_and_others_write(tmp_path):
    """What is written in every clock, or by the inputs, is always compared; the rest if its writer did not rest."""
    text = rests(tmp_path)
    bodies = [part.partition("void keep")[0].partition("return true;")[2] for part in text.split("bool stirs")[1:]]
    assert [re.findall(r"(last & \w+)u|root\.(\w+(?:\[0U\])?)", body) for body in bodies] == [
        [("", "limit"), ("", "pushed"), ("last & 0x4", ""), ("last & 0x4", ""), ("", "at")],
        [("last & 0x2", ""), ("", "count[0U]")]]
    assert "BITS[] = {0x2, 0x4, 0}" in text
    # Its own registers are kept, and a memory is not.
    kept = [re.findall(r"(\w+)_\.(\w+) =", part.partition("int changed")[0])
            for part in re.split(r"void keep\(Number<\d>, Root& root\)", text)[1:]]
    assert kept == [[("one", "at"), ("one", "limit"), ("one", "pushed")],
                    [("two", "at"), ("two", "count_0U"), ("two", "sum")]]


def test_a_number_in_a_branch_wakes_no_room(tmp_path):
    """The branch is marked, and a room does not rest while it is taken."""
    text = rests(tmp_path)
    assert "root.now" not in text
    marked = MODEL.replace("(vlSelfRef.pushed) {", "(vlSelfRef.pushed) { vlSelfRef.beat_one |= 1;")
    assert written(tmp_path) == marked
    assert "changed(Number<0>, const Root& root) const {\n    if (root.beat_one) return 0;" in text
    # Outside of a branch it is compared like everything else.
    text = rests(tmp_path, MODEL.replace("(vlSelfRef.limit & vlSelfRef.table", "(vlSelfRef.now & vlSelfRef.table"))
    assert "differs(root.now, one_.now)" in text


def written(tmp_path):
    """The model's text as it is now, without the local variable of its clocks."""
    text = (tmp_path / "Vboard___024root__0.cpp").read_text()
    local = "    const uint64_t clocks = vlSelfRef.__VnbaTriggered[0U];\n"
    assert text.count(local) == 1
    assert text.count("__VnbaTriggered") == 1
    return text.replace(local, "").replace("ULL & clocks)", "ULL & vlSelfRef.__VnbaTriggered[0U])")


def test_a_memory_wakes_a_room_when_others_write_into_it(tmp_path):
    """Where they write is marked; a memory that is written outside of a branch may have changed whenever they ran."""
    write = "vlSelfRef.table[vlSelfRef.at] = 1U;"
    branch = f"        if (vlSelfRef.pushed) {{\n        {write}\n        }}\n"
    for text, marked in ((branch, True), (f"        {write}\n", False)):
        found = rests(tmp_path, MODEL.replace("        vlSelfRef.at = ", f"{text}        vlSelfRef.at = "))
        stirs = found.partition("bool stirs(Number<0>")[2].partition("void keep")[0]
        assert "if (root.beat_one & 2) return true;" in stirs
        assert (f"{{ vlSelfRef.beat_one |= 2;\n        {write}" in written(tmp_path)) is marked
        assert ("| true)) return true;" in stirs) is not marked
    assert "table" not in found.partition("void keep(Number<0>")[2].partition("}")[0]


def test_a_part_that_has_changed_is_compared_first(tmp_path):
    """Eight values each; 0 is the mark of a branch."""
    lines = "".join(f"        vlSelfRef.out{k} = vlSelfRef.out{k} & vlSelfRef.at;\n" for k in range(10))
    text = rests(tmp_path, MODEL.replace("        vlSelfRef.at = ", lines + "        vlSelfRef.at = "))
    part = text.partition("bool changed(Number<1>")[2].partition("static")[0]
    cases = re.findall(r"case \d: return (.*?);", part, re.DOTALL)
    assert [case.count("differs") for case in cases] == [8, 5]


@pytest.mark.parametrize("change", [
    ("__Vtrigprevexpr___TOP__beat_two__0", "other"), ("eval_ico", "eval_other"),
    ("// Body\n", "// Body\n    more();\n"), ("    if ((6ULL", "    if ((6ULL | "),
    ("VL_ADD_W", "(~ (IData)(vlSelfRef.clk)) VL_ADD_W"),
])
def test_a_model_of_another_form_has_no_rests(tmp_path, change):
    assert change[0] in MODEL
    assert rests(tmp_path, MODEL.replace(*change)) == ""


@pytest.mark.parametrize(
    ("board", "sink"),
    [("odd", Sink.CLASSIC), ("odd_extended", Sink.EXTENDED), ("odd_extended", Sink.CLASSIC),
     ("stored", Sink.EXTENDED), ("in_halves", Sink.EXTENDED), ("in_quarters", Sink.EXTENDED),
     ("byte_wide", Sink.EXTENDED)],
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 12))])
def test_nothing_changes_in_what_rests(request, board, sink, seed):
    """In all modes, with all kinds of hosts, with skipped clocks and without; and most parts rest at some time."""
    geometry = request.getfixturevalue(board)
    rng = np.random.default_rng([seed, geometry.nodes, sink, 7])
    played, window = random_strobes(rng, geometry), Window(int(rng.integers(4)))
    values, options = configured(rng, geometry, sink), host(rng)
    streams, rested = [], {}
    for rest, skip in ((Rest.OFF, False), (Rest.ON, False), (Rest.CHECKED, False), (Rest.CHECKED, True)):
        with VirtualLink(played, geometry, skip=skip, rest=rest, **options) as link:
            for name, value in values.items():
                write(link, name, value)
            streams.append(play(link, played, window, sink=sink).stream)
            rested = {name: clocks / link.cycles for name, clocks in link.rested.items()}
    assert streams[0] == streams[1] == streams[2] == streams[3], (window, values, options)
    assert sum(share > 0.2 for share in rested.values()) >= len(rested) // 2, rested


def test_a_quiet_board_rests(stored):
    """With windows of one clock, only what reads the time or sweeps over the nodes is computed."""
    played = stimulus(strobes(stored, [1000, 100_000], nodes=16), stored.nodes)
    with VirtualLink(played, stored, skip=False, rest=Rest.CHECKED) as link:
        play(link, played, Window.CLOCK, sink=Sink.EXTENDED)
        awake = {name for name, clocks in link.rested.items() if clocks < 0.9 * link.cycles}
    assert awake <= {"loss"}


@pytest.fixture
def alone(tools, tmp_path, monkeypatch):
    monkeypatch.setenv("HYPERMON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HYPERMON_BUILD", "quick")


def test_a_room_that_misses_a_change_is_noticed(alone, monkeypatch):
    """Rooms that never wake, in a board that checks them."""
    monkeypatch.setattr(build, "rests", lambda *model: re.sub(r"\)\) return true;", ") && false) return true;",
                                                              resting.rests(*model)))
    played = stimulus(sparse(np.random.default_rng(5), SMALL, 100, 10**8), 2)
    with pytest.raises(HypermonError, match="has changed while it should have rested: "):
        once(played, SMALL, rest=Rest.CHECKED)


def test_without_rests(alone, monkeypatch):
    """A board whose model has another form is built with one clock for all, and gives the same stream."""
    played = stimulus(sparse(np.random.default_rng(5), SMALL, 100, 10**8), 2)
    usual = once(played, SMALL, seed=1).stream
    monkeypatch.setattr(build, "rests", lambda *model: "")
    monkeypatch.setattr(build, "_key", lambda geometry, shell, level: "plain")
    with VirtualLink(played, SMALL, seed=1) as link:
        assert play(link, played).stream == usual
        assert link.rested == {}
