"""The package of bitstreams: a real wheel of a tiny one, installed, and what `hypermon flash` takes from it."""

import hashlib
import json
import subprocess
import sys
import zipfile

import pytest
from click.testing import CliRunner
from hypermon.boards.registry import find
from hypermon.boards.toolchain.wheel import PackageError, main, wheel
from hypermon.hdl.layout import FORMAT_VERSION, REGISTER_VERSION
from hypermon.hdl.verilog import build_hash
from hypermon.host.cli import cli

BOARD, CONFIG, NODES = "ulx3s-25f", "classic", 1


def built(folder, content=b"a bitstream", **other):
    """What a build leaves, of a bitstream that is none."""
    folder.mkdir(exist_ok=True)
    (folder / f"{BOARD}-{CONFIG}.bit").write_bytes(content)
    described = folder / f"{BOARD}-{CONFIG}.json"
    described.write_text(json.dumps({
        "board": BOARD, "config": CONFIG, "link": "uart", "nodes": NODES, "bitstream": f"{BOARD}-{CONFIG}.bit",
        "build": f"{build_hash(find(BOARD).geometry(CONFIG, NODES)):08x}",
        "sha256": hashlib.sha256(content).hexdigest()} | other))
    return described


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that the wheel was installed into."""
    folder = tmp_path_factory.mktemp("package")
    built(folder / "built")
    main(["--built", str(folder / "built"), "-o", str(folder / "dist")])
    [made] = (folder / "dist").iterdir()
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
                    "--disable-pip-version-check", "--target", folder / "site", made], check=True)
    return folder / "site"


@pytest.fixture
def flash(installed, tmp_path, monkeypatch):
    """Runs `hypermon flash` with a loader that notes what it is called with, and the package there."""
    loader = tmp_path / "loader"
    loader.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\n')
    loader.chmod(0o755)
    monkeypatch.setenv("OPENFPGALOADER", str(loader))
    monkeypatch.syspath_prepend(installed)

    def run(*arguments):
        done = CliRunner().invoke(cli, ["flash", BOARD, "-o", str(tmp_path / "out"), *arguments],
                                  standalone_mode=False)
        called = tmp_path / "called"
        return done, called.read_text().split() if called.exists() else None
    yield run
    sys.modules.pop("hypermon_bitstreams", None)


def test_flash_takes_it_from_the_package(flash, installed):
    done, called = flash("--config", CONFIG)
    assert done.exception is None
    assert called == ["-b", "ulx3s", str(installed / "hypermon_bitstreams" / f"{BOARD}-{CONFIG}.bit")]
    assert "of hypermon-bitstreams" in done.stderr


def test_what_was_built_here_comes_first(flash, tmp_path):
    built(tmp_path / "out", b"mine")
    done, called = flash("--config", CONFIG)
    assert called == ["-b", "ulx3s", str(tmp_path / "out" / f"{BOARD}-{CONFIG}.bit")]
    assert "built here" in done.stderr


def test_what_is_not_in_it_is_said(flash):
    done, called = flash("--config", "extended")
    assert f"no {BOARD}-extended; it has: {BOARD}-classic; to make it: hypermon build {BOARD}" in str(done.exception)
    assert called is None


def test_without_the_package_the_command_is_named(flash, installed, monkeypatch):
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part != str(installed)])
    done, _ = flash("--config", CONFIG)
    assert f"not installed; to make it: hypermon build {BOARD} --config classic" in str(done.exception)


@pytest.mark.parametrize("what", ["local", "package"])
def test_a_damaged_bitstream_is_not_flashed(flash, installed, tmp_path, what):
    folder = tmp_path / "out" if what == "local" else installed / "hypermon_bitstreams"
    if what == "local":
        built(folder)
    path = folder / f"{BOARD}-{CONFIG}.bit"
    whole = path.read_bytes()
    path.write_bytes(b"something else")
    done, called = flash("--config", CONFIG)
    path.write_bytes(whole)
    assert f"{path} is damaged" in str(done.exception)
    assert f"hypermon build {BOARD} --config classic" in str(done.exception)
    assert called is None


@pytest.mark.parametrize(("step", "age", "upgrade"), [(-1, "older", "hypermon-bitstreams"), (1, "newer", "hypermon")])
def test_other_versions_name_the_command(flash, installed, step, age, upgrade):
    path = installed / "hypermon_bitstreams" / "manifest.json"
    said = path.read_text()
    manifest = json.loads(said)
    path.write_text(json.dumps(manifest | {"register_version": manifest["register_version"] + step}))
    done, called = flash("--config", CONFIG)
    path.write_text(said)
    assert f"are {age} than this program" in str(done.exception)
    assert str(done.exception).endswith(f"pip install --upgrade {upgrade}")
    assert called is None


@pytest.mark.parametrize(("step", "age"), [(-1, "older"), (1, "newer")])
def test_so_does_an_old_one_that_was_built_here(flash, tmp_path, step, age):
    built(tmp_path / "out", format_version=FORMAT_VERSION, register_version=REGISTER_VERSION + step)
    done, called = flash("--config", CONFIG)
    assert f"is {age} than this program (register version {REGISTER_VERSION + step}, not" in str(done.exception)
    assert f"to make it anew: hypermon build {BOARD} --config classic" in str(done.exception)
    assert called is None


def test_a_project_for_a_vendors_tool_is_left_out(tmp_path):
    described = built(tmp_path / "built")
    vendors = tmp_path / "built" / "arty-a7-35t-classic.json"
    vendors.write_text(json.dumps(json.loads(described.read_text()) | {
        "board": "arty-a7-35t", "vendor": "Vivado", "bitstream": "arty-a7-35t-classic-vivado/hypermon_board.bit"}))
    made = wheel([described, vendors], tmp_path / "dist")
    assert not any("arty" in name for name in zipfile.ZipFile(made).namelist())
    with pytest.raises(PackageError, match="no bitstreams to pack"):
        wheel([vendors], tmp_path / "dist")


@pytest.mark.parametrize("text", ["{", "[]", '{"board": "ulx3s-25f"}'])
def test_a_damaged_description_is_named(tmp_path, text):
    described = built(tmp_path / "built")
    described.write_text(text)
    with pytest.raises(PackageError, match=r"classic\.json is damaged"):
        wheel([described], tmp_path / "dist")


def test_no_bitstreams_no_package(tmp_path):
    with pytest.raises(PackageError, match="make bitstreams"):
        wheel([], tmp_path / "dist")


@pytest.mark.parametrize(("changes", "said"), [
    ({"build": "00000000"}, "is gateware 00000000, the sources are"),
    ({"sha256": "0" * 64}, "is not the file that ulx3s-25f-classic.json tells of")])
def test_what_does_not_belong_in_is_refused(tmp_path, changes, said):
    with pytest.raises(PackageError, match=said) as refused:
        wheel([built(tmp_path / "built", **changes)], tmp_path / "dist")
    assert f"hypermon build {BOARD} --config classic --link uart -o {tmp_path / 'built'}" in str(refused.value)
    assert not (tmp_path / "dist").exists()
