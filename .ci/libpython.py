"""Fetches the library of Python that cocotb loads into a simulator, if this machine has none.

Debian's Python comes without it. The package ``libpython3.11``, or that of the version that runs this, is downloaded
and unpacked into the virtual environment, where cocotb looks for it. Nothing is installed on the machine.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from find_libpython import find_libpython

__all__ = ["fetch_libpython"]

_NAME = f"libpython{sys.version_info[0]}.{sys.version_info[1]}"


def fetch_libpython(prefix: Path) -> None:
    """Puts the library into ``prefix/lib``.

    Raises
    ------
    OSError
        if the package cannot be downloaded or unpacked.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            _run(folder, "apt-get", "download", _NAME)
        except OSError:
            # A new machine has no lists of packages, and they belong to root.
            for part in ("lists/partial", "cache/archives/partial"):
                (folder / part).mkdir(parents=True)
            own = [f"-oDir::State::lists={folder / 'lists'}", f"-oDir::Cache={folder / 'cache'}",
                   "-oAPT::Sandbox::User=root", "-oAcquire::Languages=none", "-oAPT::Update::Error-Mode=any"]
            _run(folder, "apt-get", *own, "update")
            _run(folder, "apt-get", *own, "download", _NAME)
        for package in folder.glob("*.deb"):
            _run(folder, "dpkg-deb", "-x", str(package), str(folder / "root"))
        libraries = list((folder / "root").rglob(f"{_NAME}.so.1.0"))
        if not libraries:
            raise OSError(f"the package {_NAME} has no {_NAME}.so.1.0")
        new = prefix / "lib" / f"{_NAME}.so.new"
        new.write_bytes(libraries[0].read_bytes())
        new.replace(prefix / "lib" / f"{_NAME}.so.1.0")


def _run(folder: Path, *command: str) -> None:
    options = ["-oAcquire::Retries=3"] if command[0] == "apt-get" else []
    done = subprocess.run([command[0], *options, *command[1:]], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError((done.stderr.strip().splitlines() or [f"{command[0]} failed"])[-1])


if __name__ == "__main__":
    if find_libpython() is None:
        print(f"Setting up: {_NAME}, which cocotb loads (5 s)", flush=True)
        try:
            fetch_libpython(Path(sys.prefix))
            if find_libpython() is None:
                raise OSError("cocotb does not find the one of Debian")
        except OSError as error:
            # Only cocotb's benches need it.
            print(f"{_NAME} is missing: {error}. On Debian: apt-get install {_NAME}", file=sys.stderr)
