"""More small parts at their bounds: files that are too long, runs of programs, memory outside the FPGA."""

import json
import sys
from types import SimpleNamespace

import pytest
from hypermon.hdl.layout import Sink
from hypermon.host.cli import _run
from hypermon.host.diagnose import selftest
from hypermon.host.errors import InputError
from hypermon.host.text.json_file import read_regular


@pytest.mark.parametrize(("size", "legal"), [(0, True), (99, True), (100, True), (101, False), (10_000, False)])
def test_files_that_are_too_long(tmp_path, size, legal):
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    if legal:
        assert read_regular(path, 100) == b"x" * size
    else:
        with pytest.raises(InputError, match="it is longer than 100 bytes"):
            read_regular(path, 100)


def test_where_the_run_of_a_program_goes(monkeypatch, tmp_path, capsys):
    """To the folder that is asked for; else to one that goes when the command ends."""
    pytest.importorskip("hypermon.studies.ipsc.runs.experiment")
    seen = []

    def experiment(*_, path, **settings):
        seen.append((path, path.parent.is_dir()))
        return SimpleNamespace(as_dict=dict, checked="right")

    monkeypatch.setattr(sys.modules["hypermon.studies.ipsc.runs.experiment"], "experiment", experiment)
    assert _run(["ipsc", "run", "life", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == "right"
    assert _run(["ipsc", "run", "life", "--json", "-o", str(tmp_path / "kept")]) == 0
    (aside, there), (kept, _) = seen
    assert there
    assert not aside.parent.exists()
    assert kept == tmp_path / "kept"


@pytest.mark.parametrize(("depth", "beats"), [
    (0x0000_0000, None), (0x0000_0200, 0x200), (0x000a_0000, 1024), (0x000a_0200, 0x200 + 1024),
    (0x0014_0000, (1 << 20) // 16)])
def test_how_much_fills_the_memories(monkeypatch, depth, beats):
    """All of the store, and at most 1 MB of the memory outside; a byte a write at least."""
    asked = []
    monkeypatch.setattr(selftest, "_held", lambda device, sink: 7)
    monkeypatch.setattr(selftest, "_virtual", lambda device: True)
    monkeypatch.setattr(selftest, "_stalled", lambda *arguments, **more: (
        asked.append(arguments[4]), ("no", SimpleNamespace(levels=None)))[1])
    device = SimpleNamespace(identity=SimpleNamespace(
        vector_depth=5, store_depth=depth & 0xffff, external_depth=1 << (depth >> 16) if depth >> 16 else 0))
    verdict, said = selftest._store(device, Sink.EXTENDED)
    if beats is None:
        assert (verdict, said) == (None, "the board has neither a store nor external memory")
    else:
        assert (verdict, said, asked) == (False, "no", [16 * beats + 7 + 5])
