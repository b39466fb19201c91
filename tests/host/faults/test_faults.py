"""A disk that fails at the worst moment: every command says so in one line, and leaves nothing half-written.

``disk.c`` is preloaded into real commands and makes their n-th write, fsync, rename or close fail, once or from then
on. For each fault: the exit status is that of a healthy disk, 2 or 3. In the first case the result is whole; otherwise
one line names a file and the reason, no file is left under its final or a hidden name, and no library complains.
"""

import errno
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.fake_board import FakeBoard, random_run
from tests.host.telling import made_up

HERE = Path(__file__).parent
#: Of each command: arguments, and the folder that fails. ``{out}`` is a new one, ``{name}`` a run.
_EXPORTS = {"csv": "mixed", "vcd": "mixed", "fst": "mixed", "sr": "losing", "frames": "losing", "perfetto": "named",
            "ctf": "named", "ctf2": "named", "otf2": "named", "events": "named"}
COMMANDS = {
    **{form: (["export", f"{{{run}}}", "--to", form, "{out}/o"], "out") for form, run in _EXPORTS.items()},
    "sr": (["export", "{losing}", "--to", "sr", "{out}/o", "--nodes", "0-3"], "out"),
    "trim": (["trim", "{losing}", "{out}/o", "--nodes", "0-2"], "out"),
    "merge": (["merge", "{losing}", "{named}", "-o", "{out}/o", "--offset", "{named}=0.1"], "out"),
    "record": ("record:{out}/o", "out"), "record-ring": ("record-ring:{out}/o", "out"),
    "record-events": ("record-events:{out}/o", "out"), "record-stats": ("record-stats:{out}/o", "out"),
    "record-registers": ("record-registers:{out}/o", "out"),
    "decode": (["decode", "{losing}"], "losing"), "decode-mixed": (["decode", "{mixed}"], "mixed"),
    "dictionary": (["decode", "{mixed}", "--dictionary", "{book}"], "mixed"),
    "query": (["query", "{named}", "select count(*) from states", "--csv"], "named"),
    "report": (["report", "{losing}", "-o", "{out}/o.html"], "out"),
    "analyse": (["analyse", "{losing}", "rate", "-o", "{out}/o"], "out"),
    "header": (["dict", "{book}", "--c-header", "{out}/o.h"], "out"),
    "framed": (["decode", "{losing}", "--framing", "event"], "losing"),
    "junit": (["check", "{named}", "{rules}", "--junit", "{out}/o.xml"], "out"),
    "compare": (["compare", "{losing}", "{losing}", "--html", "{out}/o.html"], "out"),
    "compare-named": (["compare", "{named}", "{named}", "--json"], "named"),
    "drawing": (["pinout", "ulx3s-85f", "--svg", "{out}/o.svg"], "out"),
}
RULES = '[[rule]]\nname = "r"\nkind = "rate"\nevent = "begin"\nper = "1 s"\nmax = 1000\n'
RECORDS = [name for name in COMMANDS if name.startswith("record")]
KINDS = ("write", "fsync", "rename", "close")
ERRORS = (errno.ENOSPC, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)


class Faulty:
    """Commands whose disk fails, in copies of prepared runs."""

    def __init__(self, library: Path, work: Path, ready: dict[str, Path]):
        self.work, self.ready = work, ready
        work.mkdir()
        self._server = subprocess.Popen([sys.executable, "-m", "tests.host.faults.faulting"], cwd=HERE.parents[2],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "LD_PRELOAD": str(library)})

    def close(self):
        self._server.stdin.close()
        assert self._server.wait(60) == 0
        self._server.stdout.close()

    def run(self, name, kind="-", at=0, error=0, lasting=False, fresh=True):
        """The answer, and the files that are there then."""
        work, fails = COMMANDS[name]
        folders = {"out": self.work / "out", **{each: self.work / each for each in self.ready}}
        for name, folder in folders.items() if fresh else ():
            shutil.rmtree(folder, ignore_errors=True)
            if name == "out":
                folder.mkdir()
            elif self.ready[name].is_dir():
                shutil.copytree(self.ready[name], folder)
            else:
                shutil.copy(self.ready[name], folder)
        work = [word.format(**folders) for word in work] if isinstance(work, list) else work.format(**folders)
        case = {"work": work, "folder": f"{folders[fails]}/", "kind": kind, "at": at, "error": error,
                "lasting": lasting}
        self._server.stdin.write(json.dumps(case) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline()), tree(folders[fails])


def tree(folder):
    """The files of a folder: digests, but only sizes of those with times of day or of this process in them."""
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def settled(files):
    """Without files that differ from one run to the next."""
    own = ("recording.json", "clock.json", "decode.json", "semantics.json", "o.html")
    return {name: None if name.rpartition("/")[2] in own or ".fst" in name or "otf2" in name else digest
            for name, digest in files.items()}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("faults are injected on Linux, with a C compiler")
    made = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run([compiler, "-x", "c", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", made, HERE / "disk.c",
                    "-ldl"], check=True)
    return made


@pytest.fixture
def faulty(library, tmp_path, make_run, mixed_run, told):
    (tmp_path / "ready").mkdir()
    losing = make_run(random_run(FakeBoard(), random.Random(3), 40, losses=0.3), name="losing")
    named, book = told(made_up(random.Random(2), 400)), tmp_path / "book.toml"
    ready = {"losing": losing.path, "mixed": mixed_run.path, "named": named.path, "book": book,
             "rules": tmp_path / "rules.toml"}
    ready["rules"].write_text(RULES)
    faulty = Faulty(library, tmp_path / "work", ready)
    yield faulty
    faulty.close()


def wrong(name, answer, files, before, good, whole):
    """What is not as it should be after a fault: reasons; none if all is well."""
    status, lines, left = answer["status"], answer["lines"], set(files) - set(before)
    found = []
    if any("Traceback" in line or "Exception ignored" in line for line in lines):
        found.append("a library complains")
    if status == good["status"]:
        if settled(files) != settled(whole) or answer["out"] != good["out"]:
            found.append(f"status {status}, and the result differs: {sorted(set(files) ^ set(whole))}")
        return found
    said = [line for line in lines if line.startswith("hypermon: ")]
    if status not in (2, 3):
        found.append(f"status {status}")
    if len(said) != 1 or "/" not in said[0] or "rrno" in said[0] or "etail" in said[0]:
        found.append("no line with a file and the reason, or several")
    if (name in RECORDS and status == 3) or COMMANDS[name][1] != "out":
        left = {file for file in left if "/." in f"/{file}" and not file.endswith(".reserve")}
    if left:
        found.append(f"left: {sorted(left)}")
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_fails(faulty, name):
    rng = random.Random(f"{os.environ.get('HYPERMON_SEED', 0)} {name}")
    good, whole = faulty.run(name)
    assert good["status"] == (4 if name == "junit" else 0), good["lines"]
    fails = COMMANDS[name][1]
    before = tree(faulty.ready[fails]) if fails in faulty.ready else {}
    calls = {kind: faulty.run(name, kind)[0]["count"] for kind in KINDS}
    assert any(calls.values())
    found = []
    for kind in [kind for kind in KINDS * 4 if calls[kind]]:
        fault = kind, rng.randint(1, calls[kind]), rng.choice(ERRORS), rng.random() < 0.4
        answer, files = faulty.run(name, *fault)
        reasons = wrong(name, answer, files, before, good, {**before, **whole})
        if fails in faulty.ready and answer["status"] == 2:     # the next command does what this one could not
            again, files = faulty.run(name, fresh=False)
            if again["status"] != good["status"] or settled(files) != settled({**before, **whole}):
                reasons.append(f"again: {again}, {sorted(files)}")
        if reasons:
            found.append(f"{fault}: {'; '.join(reasons)}: {answer}")
    assert not found, "\n".join(found)
