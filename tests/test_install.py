"""What is installed: a plain install, what a wheel contains, the versions and hashes of packages."""

import configparser
import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires

import pytest
from hypermon.host.errors import to_install
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.patience import patience

from .test_package import FORMATS, HEAVY, LIVE, PARTS, ROOT, sources

# ------------------------------------------------------------------------------------ plain install

#: Makes them as absent as in a plain install, for ``import`` and for ``importlib.util.find_spec``.
BLOCKER = f"""
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name.partition(".")[0] in {HEAVY + FORMATS + LIVE!r} else find(name, path, target))
"""


def python(code: str, **kwargs) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKER + code], capture_output=True, text=True, timeout=patience(120),
                          check=False, **kwargs)


def test_the_blocker_blocks():
    assert python("import amaranth").returncode != 0


def test_host_works_without_an_hdl_tool_chain():
    # The web program and the terminal's view need the extra `live`; what lies in sigrok belongs to another program.
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in sources("host")]
    modules = [".".join(("hypermon", *part)).removesuffix(".__init__") for part in parts
               if part[1] not in ("sigrok", "web") and part[-1] != "terminal"]
    assert len(modules) > 90
    done = python(f"""
import importlib
for module in {modules!r}:
    importlib.import_module(module)
assert not [m for m in sys.modules if m.startswith("hypermon.sim")]
assert not [m for m in sys.modules if m.startswith("hypermon.hdl.") and not m.startswith("hypermon.hdl.layout")]
""")
    assert done.returncode == 0, done.stderr


def test_virtual_board_names_the_extra_it_needs(tmp_path):
    stimulus = tmp_path / "s.csv"
    stimulus.write_text("time_ns,node,port\n")
    done = python("from hypermon.host.cli import main\n"
                  f"sys.argv = ['hypermon', 'sim', {str(stimulus)!r}, '-o', {str(tmp_path / 'run')!r}]\nmain()",
                  env={**os.environ, "HYPERMON_CACHE": str(tmp_path)})
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert to_install("sim") in done.stderr
    assert not (tmp_path / "run").exists()


def test_live_views_name_the_extra_they_need(tmp_path):
    done = python("from hypermon.host.cli import main\n"
                  f"sys.argv = ['hypermon', 'serve', '-b', {str(tmp_path)!r}]\nmain()")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"need aiohttp, which is not installed: {to_install('live')}" in done.stderr


def test_perfetto_names_the_extra_it_needs():
    done = python("""
import io
from hypermon.host.errors import HypermonError
from hypermon.host.export.perfetto import write_trace
try:
    write_trace(io.BytesIO(), None, [])
except HypermonError as error:
    print(error)
""")
    assert done.stdout == f"Perfetto's format is not installed: {to_install('perfetto')}\n", done.stderr


# -------------------------------------------------------------------------------------------- wheel

#: The folders of the distribution `hypermon`.
INSIDE = (*(part for part in PARTS if part != "studies"), "node")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel, built from a copy, so that nothing is left in the checkout."""
    tmp = tmp_path_factory.mktemp("wheel")
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in INSIDE:
        shutil.copytree(ROOT / part, tmp / "src" / part, ignore=skip)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp / "src")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
         "-w", tmp, tmp / "src"],
        check=True, timeout=patience(300), env={k: v for k, v in os.environ.items() if k != "PIP_CONSTRAINT"})
    [path] = tmp.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_wheel_has_every_source(wheel):
    inside = {n for n in wheel.namelist() if n.startswith("hypermon/")}
    kinds = {".py", ".cpp", ".h", ".c", ".toml", ".html", ".js", ".css", ".LICENSE"}
    expected = {f"hypermon/{path.relative_to(ROOT)}" for part in INSIDE for path in (ROOT / part).rglob("*")
                if path.suffix in kinds}
    assert len(expected) > 40
    assert expected - inside == set()


def test_wheel_has_nothing_else(wheel):
    tops = {n.partition("/")[0] for n in wheel.namelist()}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"hypermon"}
    assert {n.split("/")[1] for n in wheel.namelist() if n.startswith("hypermon/")} == set(INSIDE)


def test_the_node_library_is_found(wheel, tmp_path):
    wheel.extractall(tmp_path)
    code = "import importlib.resources as r; print((r.files('hypermon.node') / 'hypermon.h').is_file())"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          timeout=patience(60), check=True)
    assert done.stdout == "True\n"


def test_studies_name_their_distribution(tmp_path):
    """Without it, its commands end with the line that installs it; nothing else changes."""
    code = ("import importlib.metadata as m, sys\n"
            "real = m.distributions\n"
            "m.distributions = lambda: [d for d in real() if d.name != 'hypermon-studies']\n"
            "from hypermon.host.cli import main\n"
            "sys.argv[0] = 'hypermon'\nmain()")
    for words in (["ipsc"], ["ipsc", "run", "life", "--nodes", "4"], ["machine", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True,
                              timeout=patience(60), check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (f"hypermon: `hypermon {words[0]}` belongs to hypermon-studies, which is not installed: "
                               f"{to_install('studies')}\n")
    done = subprocess.run([sys.executable, "-c", code, "emulate", "--help"], capture_output=True, text=True,
                          timeout=patience(60), check=True)
    assert "Play WORKLOAD" in done.stdout


def test_wheel_has_the_command(wheel):
    [name] = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
    entries = configparser.ConfigParser()
    entries.read_string(wheel.read(name).decode())
    assert entries["console_scripts"]["hypermon"] == "hypermon.host.cli:main"


def test_plain_install_brings_the_host_only(wheel):
    [name] = [n for n in wheel.namelist() if n.endswith("METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    plain = {r.split()[0].rstrip(";") for r in metadata.get_all("Requires-Dist") if "extra ==" not in r}
    assert {r.partition(">")[0].partition("<")[0] for r in plain} == {"click", "duckdb", "numpy", "pyarrow", "rich"}
    assert set(metadata.get_all("Provides-Extra")) == {
        "cocotb", "gateware", "sim", "timing", "boards", "fusesoc", "perfetto", "otf2", "dask", "dataframes",
        "report", "live", "view", "uart", "usb", "pytest", "dev"}


# ----------------------------------------------------------------------------------------- versions

REQUIREMENTS = ROOT / "requirements"


def pins(name: str) -> dict[str, str]:
    """Package to version of a constraints file."""
    lines = [line.partition("#")[0].strip() for line in (REQUIREMENTS / name).read_text().splitlines()]
    return dict(line.lower().replace("_", "-").split("==") for line in lines if line)


def requirements() -> list:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [r for group in groups for r in map(Requirement, group) if r.name != "hypermon"]


def test_newest_versions_are_allowed_and_pinned():
    newest = pins("constraints.txt")
    for r in requirements():
        assert r.specifier.contains(newest[r.name]), f"{r}: constraints.txt has {newest[r.name]}"


def test_lowest_versions_are_the_bounds():
    lowest = pins("constraints-lowest.txt")
    for r in requirements():
        [bound] = [s.version for s in r.specifier if s.operator == ">="]
        pin = lowest[r.name]
        assert r.specifier.contains(pin), f"{r}: constraints-lowest.txt has {pin}"
        # "0.60" is the bound of 0.60.0.0.post1055.
        assert pin == bound or pin.startswith(f"{bound}."), f"{r}: constraints-lowest.txt has {pin}"


# ---------------------------------------------------------------------------------- locked files

LOCKED = {"locked-host.txt": "", "locked-sim.txt": "sim", "locked-dev.txt": "dev"}


def locked(file: str) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of every package of a locked file, and of those that it includes."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in (REQUIREMENTS / file).read_text().replace("\\\n", "").splitlines():
        if line.startswith("-r "):
            found |= locked(line[3:])
        elif not line.startswith("#"):
            what, *hashes = line.split()
            name, version = what.split("==")
            found[canonicalize_name(name)] = version, hashes
    return found


def needed(extra: str) -> set[str]:
    """All packages that the project needs with an extra, as those that are installed say."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    todo, seen = [(line, "") for line in [*project["dependencies"], *extras.get(extra, [])]], set()
    while todo:
        line, own = todo.pop()
        requirement = Requirement(line)
        if (line, own) in seen or (requirement.marker and not requirement.marker.evaluate({"extra": own})):
            continue
        seen.add((line, own))
        if requirement.name == "hypermon":
            todo += [(more, "") for wanted in requirement.extras for more in extras[wanted]]
        else:
            needs = requires(requirement.name) or []
            todo += [(more, wanted) for wanted in ("", *requirement.extras) for more in needs]
    return {canonicalize_name(Requirement(line).name) for line, _ in seen} - {"hypermon"}


@pytest.mark.parametrize(("file", "extra"), LOCKED.items())
def test_locked_files_have_every_package_at_the_version_of_the_constraints(file, extra):
    constraints = dict(line.split("==") for line in (REQUIREMENTS / "constraints.txt").read_text().splitlines()
                       if not line.startswith("#"))
    constraints = {canonicalize_name(name): version for name, version in constraints.items()}
    found = locked(file)
    assert needed(extra) - found.keys() == set()
    assert "setuptools" in found, "the project is built with what is installed"
    for name, (version, hashes) in found.items():
        assert constraints[name] == version, name
        assert hashes, name
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for one in hashes), name
    if extra == "dev":
        assert found.keys() == constraints.keys()
    assert "://" not in (REQUIREMENTS / file).read_text()


def test_a_package_that_is_not_the_locked_one_is_not_installed(tmp_path):
    """One line says so, and what to do on a machine for which no file is locked."""
    wheel = tmp_path / "some_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("some_thing.py", "")
        for name, text in (("METADATA", "Metadata-Version: 2.1\nName: some-thing\nVersion: 1.0\n"), ("RECORD", ""),
                           ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")):
            file.writestr(f"some_thing-1.0.dist-info/{name}", text)
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path),
                   "PIP_TARGET": str(tmp_path / "there"), "PIP_UPGRADE": "1"}
    for text, line in ((f"some-thing==1.0 --hash=sha256:{right}", None),
                       (f"some-thing==1.0 --hash=sha256:{'0' * 64}", "some-thing==1.0"),
                       (f"some-thing==1.1 --hash=sha256:{right}", "some-thing==1.1"), ("some-thing==1.0", "hash")):
        (tmp_path / "locked.txt").write_text(text + "\n")
        done = subprocess.run([ROOT / ".ci" / "install-locked", sys.executable, tmp_path / "locked.txt", wheel],
                              env=environment, capture_output=True, text=True)
        if line is None:
            assert done.returncode == 0, done.stderr
            assert (tmp_path / "there" / "some_thing.py").exists()
            shutil.rmtree(tmp_path / "there")
            continue
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert line in done.stderr
        assert "make setup HASHES=no" in done.stderr
        assert not (tmp_path / "there").exists()


def test_an_environment_of_another_folder_is_named(tmp_path):
    """Tests would be of that folder's sources, in part."""
    (tmp_path / "hypermon" / "host").mkdir(parents=True)
    (tmp_path / "hypermon" / "host" / "__init__.py").touch()
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_long_tail.py"],
                          cwd=ROOT, capture_output=True, text=True, timeout=patience(60), check=False,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 4
    assert f"the hypermon of {tmp_path / 'hypermon'}, not of {ROOT}" in done.stderr
