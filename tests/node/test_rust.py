"""The node library's crate: its own tests, by cargo."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.host.external.readers import needs
from tests.patience import patience

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "node" / "rust"


def cargo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Compiled code is kept in .build, warnings are errors."""
    needs("cargo")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / ".build" / "cargo"), "RUSTFLAGS": "-D warnings",
                   "CARGO_TERM_COLOR": "never"}
    return subprocess.run(["cargo", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=patience(300))


def test_the_crate_s_tests(tmp_path: Path) -> None:
    """In a copy: cargo writes beside the sources."""
    crate = tmp_path / "rust"
    shutil.copytree(CRATE, crate, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    fetched = cargo(crate, "fetch")
    if re.search(r"failed to (get|download)|no matching package", fetched.stderr):
        pytest.skip(f"the crate's dependency cannot be had: {fetched.stderr.strip().splitlines()[-1].strip()}")
    assert fetched.returncode == 0, fetched.stderr
    done = cargo(crate, "test", "--offline")
    assert done.returncode == 0, done.stdout + done.stderr
    written = len(re.findall(r"^#\[test\]$", (CRATE / "tests" / "port.rs").read_text(), re.MULTILINE))
    passed = map(int, re.findall(r"^test result: ok. (\d+) passed; 0 failed", done.stdout, re.MULTILINE))
    assert sum(passed) == written + 1  # and the example of the documentation


def test_the_crate_has_the_package_s_version_and_license() -> None:
    crate = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (crate["version"], crate["license"]) == (project["version"], project["license"])
