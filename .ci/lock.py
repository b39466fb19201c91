"""Writes the locked requirements: every package that is installed, with its version and the hashes of its files.

The versions are those of constraints.txt, and pip resolves nothing beyond them. `make lock` runs this;
`make lock ARGS=--site` writes only the file of the documentation site, whose versions are in constraints-site.txt, and
`make lock ARGS=--dist` only that of releases, with constraints-dist.txt; `make lock ARGS=--litex`,
`ARGS=--labgrid` and `ARGS=--spark` likewise.
"""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "requirements"
#: Each file includes the one before: the host tools alone, then with the virtual board, then everything.
FILES = {"locked-host.txt": "", "locked-sim.txt": "sim", "locked-dev.txt": "dev"}
#: What else is needed to build and install the project itself.
BUILD = "setuptools"
#: Versions of Python and platforms, as pip names them. The first must have every package. The others may lack some;
#: what needs those is installed there without hashes only (HASHES=no).
_LINUX = tuple(f"manylinux{glibc}_x86_64" for glibc in ("_2_34", "_2_28", "_2_17", "2014", "2010", "1"))
TARGETS = [("3.11", _LINUX), ("3.12", _LINUX), ("3.13", _LINUX)]
HEAD = """\
# {what}: versions of {constraints}, and hashes of the files.
# Made by `make lock`. Installed by pip install --require-hashes.
"""
WHAT = {"locked-host.txt": "What a plain install needs", "locked-sim.txt": "What the virtual board needs besides",
        "locked-dev.txt": "What tests, lint, proofs, timing and boards need besides",
        "locked-site.txt": "What `make site` needs, in an environment of its own",
        "locked-dist.txt": "What `make dist` needs, in an environment of its own",
        "locked-litex.txt": "What `make example OF=litex` needs besides, in an environment of its own",
        "locked-labgrid.txt": "What `make example OF=labgrid` needs besides, in an environment of its own",
        "locked-spark.txt": "What `make example OF=spark` needs besides PySpark, in an environment of its own"}


def pinned(constraints: str) -> dict[str, str]:
    """The versions of a constraints file, by canonical name."""
    lines = (FOLDER / constraints).read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def closure(extra: str) -> set[str]:
    """The packages that the project needs with that extra, by what the installed ones say of themselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {canonicalize_name(name): wanted for name, wanted in project["optional-dependencies"].items()}
    found: set[str] = {BUILD}
    todo = [(line, "") for line in project["dependencies"]] + [(line, "") for line in extras.get(extra, [])]
    seen = set()
    while todo:
        line, own = todo.pop()
        if (line, own) in seen:
            continue
        seen.add((line, own))
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": own}):
            continue
        name = canonicalize_name(requirement.name)
        if name == project["name"]:
            todo += [(more, "") for wanted in requirement.extras for more in extras[canonicalize_name(wanted)]]
            continue
        found.add(name)
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            sys.exit(f"{name} is not installed here; run `make setup HASHES=no` first")
        todo += [(more, wanted) for wanted in ("", *requirement.extras) for more in needs]
    return found


def hashes(python: str, platforms: tuple[str, ...], versions: dict[str, str], strict: bool) -> dict[str, set[str]]:
    """SHA-256 of the wheel of every package for a target; of those that have one, unless ``strict``."""
    left = dict(versions)
    while True:
        lines = [f"{name}=={version}" for name, version in sorted(left.items())]
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--no-deps",
                   "--only-binary=:all:", "--report=-", "--target=none", f"--python-version={python}",
                   *(f"--platform={platform}" for platform in platforms), *lines]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            break
        missing = re.search(r"No matching distribution found for ([^=\s]+)==", done.stderr)
        if missing is None or strict:
            sys.exit(done.stderr)
        print(f"  no wheel of {missing[1]} for {python} {platforms[0]}", file=sys.stderr)
        del left[canonicalize_name(missing[1])]
    report = json.loads(done.stdout)["install"]
    return {canonicalize_name(one["metadata"]["name"]): {one["download_info"]["archive_info"]["hashes"]["sha256"]}
            for one in report}


def found_hashes(versions: dict[str, str]) -> dict[str, set[str]]:
    """SHA-256 of the wheels of every package for all targets."""
    found: dict[str, set[str]] = {}
    for number, (python, platforms) in enumerate(TARGETS):
        print(f"Python {python}, {platforms[0]}", file=sys.stderr)
        for name, own in hashes(python, platforms, versions, strict=number == 0).items():
            found.setdefault(name, set()).update(own)
    return found


def write(file: str, constraints: str, names: set[str], before: str = "",
          found: dict[str, set[str]] | None = None) -> None:
    """Writes a locked file with the named packages, which includes the file ``before``."""
    versions = pinned(constraints)
    found = found or found_hashes(versions)
    text = HEAD.format(what=WHAT[file], constraints=constraints) + (f"-r {before}\n" if before else "")
    for name in sorted(names):
        text += f"{name}=={versions[name]}" + "".join(
            f" \\\n    --hash=sha256:{one}" for one in sorted(found[name])) + "\n"
    (FOLDER / file).write_text(text)


def main() -> None:
    """Writes the files. Needs an environment in which everything is installed, and a network."""
    for apart in ("site", "dist", "litex", "labgrid", "spark"):
        if sys.argv[1:] in ([], [f"--{apart}"]):
            write(f"locked-{apart}.txt", f"constraints-{apart}.txt", set(pinned(f"constraints-{apart}.txt")))
    if sys.argv[1:]:
        return
    versions = pinned("constraints.txt")
    found = found_hashes(versions)
    before, named = "", set()
    for file, extra in FILES.items():
        names = closure(extra) - named
        write(file, "constraints.txt", names, before, found)
        before, named = file, named | names
    if left := set(versions) - named:
        sys.exit(f"nothing needs {', '.join(sorted(left))}: take them out of constraints.txt")


main()
