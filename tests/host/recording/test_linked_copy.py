"""A RUN that cannot be written, of another user or on read-only media: its tables are made elsewhere, and removed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypermon.host.recording.linked_copy import as_given, given, linked_copy

#: As root, only a process without this capability is refused.
WITHOUT = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def refused(mixed_run, tmp_path):
    """``refused(*words)``: a command on a RUN without tables in which nothing can be written."""
    if os.geteuid() == 0 and (shutil.which("setpriv") is None or subprocess.run(
            [*WITHOUT, "true"], capture_output=True, check=False).returncode):
        pytest.skip("as root, only setpriv makes a process that is refused")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    mixed_run.path.chmod(0o555)
    said = files(mixed_run.path)

    def run(*words):
        done = subprocess.run(
            [*(WITHOUT if os.geteuid() == 0 else []), Path(sys.executable).with_name("hypermon"), *map(str, words)],
            capture_output=True, text=True, check=False, env=os.environ | {"TMPDIR": str(temporary)})
        assert files(mixed_run.path) == said
        assert list(temporary.iterdir()) == []
        return done.returncode, done.stdout, done.stderr

    yield run
    mixed_run.path.chmod(0o755)


def test_commands_work_from_the_stream(refused, mixed_run, run_cli, tmp_path):
    """What they print is what they print of a copy that can be written; each says where it made tables."""
    copy = tmp_path / "copy" / mixed_run.path.name
    shutil.copytree(mixed_run.path, copy)
    copy.chmod(0o755)
    for words in (["export", "--to", "csv"], ["query"], ["stats"]):
        after = ["-"] if words[0] == "export" else ["select count(*), sum(node) from events"] * (words[0] == "query")
        status, out, err = refused(words[0], mixed_run.path, *words[1:], *after)
        assert (status, out) == run_cli(words[0], copy, *words[1:], *after)[:2]
        assert ("it cannot be written; its tables are made in" in err) is (words[0] != "stats")
    status, _, err = refused("decode", mixed_run.path)
    assert (status, "tables must be made in it, and it cannot be written" in err) == (2, True)


def test_links_are_replaced_and_not_followed(mixed_run):
    before = files(mixed_run.path)
    made = linked_copy(mixed_run.path)
    assert made.name == mixed_run.path.name
    assert files(made) == {name: data for name, data in before.items() if not name.startswith(".")}
    (made / "new").write_text("x")
    (made / "new").replace(made / "recording.json")
    assert files(mixed_run.path) == before


def test_messages_have_the_path_that_the_user_gave(refused, mixed_run, tmp_path):
    """The copy is gone when the user reads them."""
    given = str(mixed_run.path)
    for words, status, said in ((["export", given, "--to", "logs", "-"], 2, f"hypermon decode {given} --dictionary"),
                                (["export", given, "--to", "events", "-"], 0, f"{given}: "),
                                (["export", given, "--to", "sr", tmp_path / "o.sr"], 0, f"hypermon sim {given} plays")):
        got, _, err = refused(*words)
        lines = [line for line in err.splitlines() if "its tables are made in" not in line]
        assert got == status
        assert said in "".join(lines)
        assert "hypermon-" not in "".join(lines).replace(given, "")


def test_a_dictionary_needs_a_run_that_can_be_written(refused, mixed_run, tmp_path):
    names = tmp_path / "names.toml"
    names.write_text("[go]\nid = 1\n")
    status, _, err = refused("decode", mixed_run.path, "--dictionary", names)
    assert status == 2
    assert err == (f"hypermon: {mixed_run.path}: the dictionary must be kept in it, and it cannot be written "
                   f"(Permission denied): make it writable once, for hypermon decode {mixed_run.path}, or copy it\n")


def test_paths_in_a_copy_are_paths_in_the_run(mixed_run):
    made = linked_copy(mixed_run.path)
    assert given(made / "events" / "part-00000.parquet") == mixed_run.path / "events" / "part-00000.parquet"
    assert given(made) == given(mixed_run.path) == mixed_run.path
    assert given(mixed_run.path.parent / "other") == mixed_run.path.parent / "other"
    assert as_given(f"{made}: see {made}/loss.parquet") == f"{mixed_run.path}: see {mixed_run.path}/loss.parquet"
