"""A copy of the sources in which mutants are tried.

What tests import and no mutant changes is imported here, once for all; each run is a fork of this process.
"""

import contextlib
import fcntl
import itertools
import os
import re
import runpy
import select
import shlex
import shutil
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import amaranth.back.verilog
import amaranth.sim  # noqa: F401
import cocotb_tools.runner  # noqa: F401
import numpy as np  # noqa: F401
import pytest
from mutants import Mutant, source
from steps import Step

__all__ = ["BUILD", "ROOT", "Tree"]

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".build" / "mutation"
#: Seconds that a proof is given for an answer.
_PROOF = 120
#: Bytes that a mutant may take before it is ended.
_MEMORY = 2 << 30


class Tree:
    """A copy of the sources in which mutants are tried, one at a time.

    Members
    -------
    source : the folder that mutants are of.
    """

    source = "hdl"
    _parts: tuple[str, ...] = ("boards", "hdl", "host", "node", "sim", "studies", "tests", "pyproject.toml")
    _name = "tree"

    def __init__(self) -> None:
        self.folder = folder = self._free()
        self._times = itertools.count(1)
        for part in self._parts:
            old, new = ROOT / part, folder / part
            if old.is_dir():
                shutil.rmtree(new, ignore_errors=True)
                shutil.copytree(old, new, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(old, new)
        # Found before the editable install, which points to the repository itself.
        package = folder / ".path" / "hypermon"
        package.mkdir(parents=True, exist_ok=True)
        for part in ("boards", "hdl", "host", "node", "sim", "studies"):
            if not (package / part).exists():
                (package / part).symlink_to(folder / part)
        self.environment = os.environ | {
            "PYTHONPATH": str(folder / ".path"), "COLUMNS": "160",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HYPERMON_BUILD": "quick",
            "HYPERMON_CACHE": str(folder / ".build"), "HYPERMON_PATIENCE": str(_PROOF)}
        self.unbroken = self._unbroken()

    def _unbroken(self) -> str:
        """What :meth:`elaborated` is without a mutant."""
        unbroken = self.elaborated()
        assert unbroken, "the gateware does not elaborate"
        return unbroken

    def _free(self) -> Path:
        """The first folder that no other process uses; it is this one's from now on."""
        for k in itertools.count():
            self._lock = (BUILD / f"{self._name}-{k}.lock").open("w")
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return BUILD / f"{self._name}-{k}"
        raise AssertionError

    @contextlib.contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """The tree with that mutant; what was built of it is removed."""
        path = source(self.folder / self.source, mutant.file)
        text = path.read_text()
        before = set(self._built())
        path.write_text(mutant.applied(text))
        # A time that it never had: byte code is kept by time in seconds and size.
        os.utime(path, (next(self._times),) * 2)
        try:
            yield
        finally:
            path.write_text(text)
            for found in set(self._built()) - before:
                shutil.rmtree(found) if found.is_dir() else found.unlink(missing_ok=True)

    def _built(self) -> Iterator[Path]:
        for folder in (self.folder / ".build", self.folder / ".build" / "cocotb"):
            if folder.exists():
                yield from (p for p in folder.iterdir() if not p.name.startswith(("runtime", "headers", "cocotb")))

    def elaborated(self) -> str | None:
        """A hash of what the gateware elaborates to; None if it does not."""
        def elaborate() -> int:
            runpy.run_path("tests/mutation/probe.py", run_name="__main__")
            return 0
        status, said = self._apart(elaborate, 300)
        return said.strip() if status == 0 else None

    def _apart(self, work: Callable[[], int], seconds: float) -> tuple[int | None, str]:
        """Does something in the tree, in a process of its own that has imported what takes long; returns its status,
        None if it did not end in time or took too much memory, and what it said."""
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if not child:
                status = 99
                with contextlib.suppress(BaseException):
                    os.setsid()
                    os.chdir(self.folder)
                    os.environ.update(self.environment)
                    sys.path[0:1] = [str(self.folder / ".path"), str(self.folder)]
                    # Or processes that multiprocessing starts would be campaigns.
                    sys.modules["__main__"] = types.ModuleType("__main__")
                    sys.stdout = sys.stderr = said
                    for stream in (1, 2):
                        os.dup2(said.fileno(), stream)
                    status = int(work())
                    said.flush()
                os._exit(status)
            watched, end = os.pidfd_open(child), time.monotonic() + seconds
            ended = []
            while not ended and (left := end - time.monotonic()) > 0 and _resident(child) < _MEMORY:
                ended, _, _ = select.select([watched], [], [], min(left, 0.5))
            os.close(watched)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            return os.waitstatus_to_exitcode(status) if ended else None, said.read()

    def _ended_early(self, status: int, said: str) -> str:
        """How a mutant has ended pytest itself; "" if that should not happen."""
        return ""

    def run(self, step: Step, first: Sequence[str] = ()) -> tuple[str | None, str]:
        """Runs the tests of a step, some of them first, until one fails: which (None if all have passed), and why."""
        options = ["-x", "-q", "-o", "addopts=-rfE", "-p", "no:cacheprovider", "-m", "not slow",
                   f"--basetemp={self.folder / '.tmp'}", *first, *shlex.split(step.arguments)]
        status, said = self._apart(lambda: pytest.main(options), step.seconds)
        if status is None:
            return (None, "no answer") if step.proof else (step.name, "does not end")
        if status == 0:
            return None, ""
        if status not in (1, 2):
            if by := self._ended_early(status, said):
                return step.name, by
            raise RuntimeError(f"pytest {step.arguments} ended with {status}:\n{said[-2000:]}")
        # A proof counts if there is a counterexample, not if it could not be begun or found none in time.
        if step.proof and [line.split()[1:3] for line in said.splitlines() if line.startswith(">")] != [
                ["assert", "holds(proved[name](),"]] and not re.search(r"^E .* = holds\(", said, re.MULTILINE):
            return None, "no answer"
        found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - (.*))?$", said, re.MULTILINE)
        return (found[1], (found[2] or "")[:160]) if found else (step.name, said[-160:])


def _resident(process: int) -> int:
    """Bytes of memory that a process has; 0 if it is no more."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
