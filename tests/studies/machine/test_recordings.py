"""From pins: recordings of our programs and of foreign ones, on the virtual board, analysed by the command."""

import json
import shutil

import pytest
from click.testing import CliRunner
from hypermon.host.cli import cli

from tests.studies.machine.foreign import Writer, echoes, quanta

pytest.importorskip("amaranth")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")

SHORT, LONG = (70.0, 0.5, 12.0), (150.0, 0.35, 28.0)


def said(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def recorded(tmp_path, writer, machine, *options):
    """What `hypermon machine analyse` says of another program's ports."""
    stimulus, run = tmp_path / "ports.csv", tmp_path / "run"
    stimulus.write_text(writer.csv())
    said("sim", stimulus, "-o", run, "--config", "extended", "--mode", "event", "--edge", "both", *options)
    return json.loads(said("machine", "analyse", machine, run, "--json"))


def lines(constant, byte, hop, rel=0.005):
    return {"constant_us": pytest.approx(constant, abs=0.5), "byte_us": pytest.approx(byte, rel=rel),
            "hop_us": pytest.approx(hop, rel=rel)}


def test_our_own(tmp_path):
    done = json.loads(said("machine", "run", "ipsc860", "path", "--nodes", 4, "--count", 1, "--json", "-o",
                           tmp_path / "run"))
    assert done["long"] == lines(147, 0.390, 30)
    assert done == json.loads(said("machine", "analyse", "ipsc860", tmp_path / "run", "--json"))
    assert "one_way" not in done
    assert (done["lost"], done["left_out"]) == (0, [])


@pytest.mark.parametrize(("window", "gap_us", "fixed_us"), [("1", 0.1, 0.5), ("800", 1.0, 3.0)])
def test_another_program_with_ports_of_four_bits(tmp_path, window, gap_us, fixed_us):
    writer = Writer(2, 4, gap_us, fixed_us)
    echoes(writer, SHORT, LONG, count=1 if window == "1" else 6)
    done = recorded(tmp_path, writer, "ipsc860", "--window", window)
    assert done["event_us"] == pytest.approx(fixed_us + 5 * gap_us, rel=0.02)
    # Stamps of 0.8 us are the coarser, the fewer messages there are.
    rel = 0.005 if window == "1" else 0.02
    assert done["short"] == lines(*SHORT, rel)
    assert done["long"] == lines(*LONG, rel)


def test_a_stream_that_was_cut_is_said(tmp_path):
    run = tmp_path / "run"
    said("machine", "run", "asciq", "bsp", "--nodes", 4, "--count", 50, "-o", run)
    done = CliRunner().invoke(cli, ["machine", "analyse", "asciq", str(run), "--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    stream = run / "stream.bin"
    stream.write_bytes(stream.read_bytes()[:-1500])
    for kept in ("decode.json", "loss.parquet"):
        (run / kept).unlink(missing_ok=True)
    shutil.rmtree(run / "events", ignore_errors=True)
    done = CliRunner().invoke(cli, ["machine", "analyse", "asciq", str(run), "--json"])
    assert "the stream was cut short" in done.stderr
    assert json.loads(done.stdout)["bsp"][0]["count"] < 49


class Reordered(Writer):
    """Writes the size of a message first, in 8 bytes."""

    def event(self, port, event, form="", *fields, drop=False):
        if form == "HHI":
            form, fields = "QHH", (fields[2], *fields[:2])
        return super().event(port, event, form, *fields, drop=drop)


DICTIONARY = """
[out]
id = 0x10
fields = { bytes = "u64", peer = "u16", sequence = "u16" }

[in]
id = 0x13
fields = { bytes = "u64", peer = "u16", sequence = "u16" }
"""


def test_fields_are_in_the_order_of_the_run_s_dictionary(tmp_path):
    writer = Reordered(2, 4)
    echoes(writer, SHORT, LONG, count=1)
    done = recorded(tmp_path, writer, "ipsc860")
    assert (done["short"], done["ratios"]) == (None, [])
    assert any("no event is one of 0x10, 0x13" in text for text in done["left_out"])
    dictionary, run = tmp_path / "own.toml", tmp_path / "run"
    dictionary.write_text(DICTIONARY)
    said("decode", run, "--dictionary", dictionary)
    done = json.loads(said("machine", "analyse", "ipsc860", run, "--json"))
    assert (done["short"], done["long"]) == (lines(*SHORT), lines(*LONG))
    # The same ids for something else are refused.
    dictionary.write_text(DICTIONARY.replace("peer", "colour").replace("u64", "u32"))
    said("decode", run, "--dictionary", dictionary)
    refused = CliRunner().invoke(cli, ["machine", "analyse", "ipsc860", str(run)])
    assert refused.exit_code != 0
    assert "event 0x10 is `out` there, without the field `peer`" in str(refused.exception)
    assert "\n" not in str(refused.exception)


@pytest.mark.slow  # a board of its own
def test_another_program_whose_board_loses(tmp_path):
    """The host reads nothing for 40 ms, so the store fills up."""
    writer = Writer(2, 4)
    echoes(writer, SHORT, LONG, count=8)
    done = recorded(tmp_path, writer, "ipsc860", "--stall", "20,40", "--store-kib", 1)
    assert done["lost"] > 50
    assert done["left_out"]
    assert any("were lost" in text for text in done["warnings"])
    assert done["short"] == lines(*SHORT)
    assert done["least_us"] > 70


def test_another_machine_s_noise(tmp_path):
    writer = Writer(2, 4)
    quanta(writer, {0: [(2.0, 16, 0.3), (3.5, 120, 0.5)], 7: [(2.0, 16, 1.1)]}, seconds=15, quantum_us=1000, each=20,
           slower={7: 1.2})
    done = recorded(tmp_path, writer, "asciq")
    assert [(row["node"], round(row["period_s"], 1), round(row["duration_ms"], 1)) for row in done["sources"]] == [
        (0, 2.0, 16.0), (0, 3.5, 120.0), (7, 2.0, 16.0)]


def test_a_run_of_another_machine_is_refused(tmp_path):
    writer = Writer(1, 4)
    writer.begin(0, 1, 2, 3, 1, 1024)
    (tmp_path / "ports.csv").write_text(writer.csv())
    said("sim", tmp_path / "ports.csv", "-o", tmp_path / "run", "--config", "extended", "--mode", "event", "--edge",
         "both")
    done = CliRunner().invoke(cli, ["machine", "analyse", "asciq", str(tmp_path / "run")])
    assert done.exit_code != 0
    assert "no program of machine 2 (asciq) begins in it, but of 3 (sp2)" in str(done.exception)


def _other_ids(writer):
    for _ in range(20):
        writer.event(0, 0x77, "HH", 1, 2)


def _short_begin(writer):
    writer.event(0, 2, "HHBB", 1, 2, 2, 1)


def _nothing_but_marks(writer):
    for number in range(20):
        writer.event(0, 1, "B", number)


@pytest.mark.parametrize(("write", "reason"), [
    (_other_ids, "none of its 20 events is a `begin` (0x02); studies/machine/events.toml lists the ids"),
    (_nothing_but_marks, "none of its 20 events is a `begin`"),
    (_short_begin, "its 1 `begin` events do not have 10 bytes of payload")])
def test_events_of_another_dictionary_are_refused(tmp_path, write, reason):
    writer = Writer(1, 4)
    write(writer)
    (tmp_path / "ports.csv").write_text(writer.csv())
    said("sim", tmp_path / "ports.csv", "-o", tmp_path / "run", "--config", "extended", "--mode", "event", "--edge",
         "both")
    done = CliRunner().invoke(cli, ["machine", "analyse", "asciq", str(tmp_path / "run")])
    assert done.exit_code != 0
    assert reason in str(done.exception)
    assert "\n" not in str(done.exception)


def test_options_are_checked():
    for words, text in ((("asciq", "path"), "no such experiment, but quantum, bsp"),
                        (("ipsc860", "path", "--nodes", "100"), "a power of two"),
                        (("asciq", "bsp", "--drop", "2"), "--drop 2: there are"),
                        (("sp2", "all-to-all", "--nodes", "33"), "2 to 32")):
        done = CliRunner().invoke(cli, ["machine", "run", *words])
        assert done.exit_code != 0
        assert text in str(done.exception)
