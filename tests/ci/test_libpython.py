"""Python's library is fetched from a package of Debian, which is made here, by a pretended apt."""

import os
import runpy
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from find_libpython import candidate_paths

PROGRAM = Path(__file__).parents[2] / ".ci/libpython.py"
fetch_libpython = runpy.run_path(str(PROGRAM))["fetch_libpython"]
#: Its Python has the library in a package.
DEBIAN = Path("/etc/debian_version").exists() and sys.base_prefix == "/usr"
NAME = f"libpython{sys.version_info[0]}.{sys.version_info[1]}"
#: Knows no package until its lists were updated, and then copies one.
APT = """#!/bin/bash
set -e
for last; do :; done
case "$*" in
*update) touch {folder}/updated ;;
*download*) [ -e {folder}/updated ] || {{ echo "E: Unable to locate package $last" >&2; exit 100; }}
  cp {folder}/package.deb "$last"_1_all.deb ;;
esac
"""


@pytest.fixture
def apt(tmp_path, monkeypatch):
    """A folder with a pretended apt and a package."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is needed")
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {NAME}\nVersion: 1\nArchitecture: all\n"
                                         "Maintainer: x\nDescription: x\n")
    (tree / "usr/lib").mkdir(parents=True)
    (tree / f"usr/lib/{NAME}.so.1.0").write_bytes(b"library")
    subprocess.run(["dpkg-deb", "-b", str(tree), str(tmp_path / "package.deb")], check=True, capture_output=True)
    program = tmp_path / "bin/apt-get"
    program.parent.mkdir()
    program.write_text(APT.format(folder=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "venv/lib").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("listed", [False, True])
def test_it_is_unpacked_where_cocotb_looks(apt, listed):
    if listed:
        (apt / "updated").touch()
    fetch_libpython(apt / "venv")
    assert str(Path(sys.prefix) / f"lib/{NAME}.so.1.0") in candidate_paths() or not DEBIAN
    assert [path.name for path in (apt / "venv/lib").iterdir()] == [f"{NAME}.so.1.0"]
    assert (apt / f"venv/lib/{NAME}.so.1.0").read_bytes() == b"library"


def test_a_package_that_cannot_be_had(apt):
    (apt / "package.deb").unlink()
    with pytest.raises(OSError, match="No such file"):
        fetch_libpython(apt / "venv")
    assert not list((apt / "venv/lib").iterdir())


def test_it_is_one_line(tmp_path):
    """As `make setup` runs it, on a machine without the library and without apt."""
    program = ("import runpy, find_libpython\nfind_libpython.find_libpython = lambda: None\n"
               f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PATH": str(tmp_path)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0         # lint and most tests do without
    [line] = done.stderr.splitlines()
    assert line.startswith(f"{NAME} is missing: ")
    assert line.endswith(f" On Debian: apt-get install {NAME}")
