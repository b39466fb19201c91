"""The classes of a run, and the names that pages and examples import."""

import importlib
import json
import subprocess
import sys

import pytest
from hypermon.host import open_run
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.errors import InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard
from tests.patience import patience


@pytest.fixture
def path(make_run):
    return make_run(FakeBoard().start().frames([(5, {0: 3}), (6, {1: 4})]).stop(9)).path


def test_a_directory_is_read_without_decoding(path):
    run = RunDirectory(path)
    assert run.stream_size == (path / "stream.bin").stat().st_size == len(b"".join(run.pieces(7)))
    assert run.info.nodes == 16
    assert not (path / "decode.json").exists()


def test_a_decoded_run_has_tables(path):
    run = DecodedRun(path)
    assert run.events(columns=["node", "nibble"]).to_pylist() == [{"node": 0, "nibble": 3}, {"node": 1, "nibble": 4}]
    assert run.loss().num_rows == 0


def test_a_run_is_all_of_it(path):
    run = open_run(path)
    assert type(run) is Run
    assert run.stats()["events"] == run.sql("select count(*) from events").fetchall()[0][0] == 2
    assert run.states().num_rows == run.messages().num_rows == run.counters().num_rows == 0


def test_the_boards_of_a_run_are_of_its_class(make_run, tmp_path):
    whole = make_run(FakeBoard().start().stop(9), name="run", boards=["board-0"])
    make_run(FakeBoard().start().stop(9), name="run/board-0")
    for kind in (RunDirectory, DecodedRun, Run):
        assert [type(part) for part in kind(whole.path).parts()] == [kind]


@pytest.mark.parametrize(("module", "names"), [
    ("hypermon.host", "HypermonError InputError Run open_run"),
    ("hypermon.host.recording", "RunInfo RunWriter refuse_existing"),
    ("hypermon.host.dictionary", "Dictionary EventKind Field PAYLOAD_MAX load_dictionary print_dictionary"),
    ("hypermon.host.events", "framed_events"),
])
def test_documented_names(module, names):
    """Each in a program of its own: what another one imported first must not matter."""
    code = f"from {module} import {', '.join(names.split())}"
    assert subprocess.run([sys.executable, "-c", code], timeout=patience(60), check=False).returncode == 0
    assert [name for name in importlib.import_module(module).__all__ if name not in dir(importlib.import_module(module))
            and getattr(importlib.import_module(module), name, None) is None] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        importlib.import_module(module).nothing  # noqa: B018 - the name is looked up


@pytest.mark.parametrize(("found", "said"), [
    (0, "its format is 0, no version of a recording's"), (None, "its format is None, no version of a recording's"),
    (True, "its format is True, no version"), (99, "recording format 99, not .*; a newer hypermon reads it")])
def test_a_format_that_this_version_does_not_read(path, found, said):
    values = json.loads((path / "recording.json").read_text())
    del values["check"]
    (path / "recording.json").write_text(json.dumps({**values, "format": found}))
    with pytest.raises(InputError, match=said):
        open_run(path)
