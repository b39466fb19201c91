"""The node library as an Arduino library: what its zip has, and its example."""

import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from hypermon.sim.emulate.arduino import NAME, main

ROOT = Path(__file__).parents[2]
EXAMPLE = "HypermonBlink"

#: What the sketch and the library take of Arduino's header, with those of its macros whose names are near to theirs.
ARDUINO_H = r"""
#include <stdint.h>
#include <stddef.h>
#define LOW 0x0
#define HIGH 0x1
#define OUTPUT 0x1
#define LED_BUILTIN 13
#define bit(b) (1UL << (b))
#define word(...) makeWord(__VA_ARGS__)
#define min(a,b) ((a)<(b)?(a):(b))
#define max(a,b) ((a)>(b)?(a):(b))
#define interrupts() __asm__ volatile ("nop")
#define noInterrupts() __asm__ volatile ("nop")
void pinMode(uint8_t pin, uint8_t mode);
void digitalWrite(uint8_t pin, uint8_t value);
void delay(unsigned long ms);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's folder, unpacked."""
    folder = tmp_path_factory.mktemp("arduino")
    main(["-o", str(folder / "new" / "library.zip")])
    with zipfile.ZipFile(folder / "new" / "library.zip") as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {NAME}
        archive.extractall(folder)
    return folder / NAME


def test_properties_are_those_of_the_specification(library: Path) -> None:
    """Arduino's Library specification, format 1.5."""
    properties = dict(line.split("=", 1) for line in (library / "library.properties").read_text().splitlines())
    assert set(properties) == {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url",
                               "architectures", "includes"}
    assert [name for name, value in properties.items() if not value and name != "url"] == []
    assert properties["name"] == NAME
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}", NAME)
    assert "arduino" not in NAME.lower()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert properties["version"] == project["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", properties["version"])
    assert properties["category"] in {"Display", "Communication", "Signal Input/Output", "Sensors", "Device Control",
                                      "Timing", "Data Storage", "Data Processing", "Other"}
    assert properties["architectures"] == "*"
    assert (library / "src" / properties["includes"]).is_file()


def test_files_are_where_the_specification_wants_them(library: Path) -> None:
    files = {str(path.relative_to(library)) for path in library.rglob("*") if path.is_file()}
    node = ROOT / "sim" / "node"
    headers = {str(path.relative_to(node)) for path in [node / "hypermon.h", *(node / "hypermon").glob("*.h")]}
    assert len(headers) > 10
    assert files == {"library.properties", "keywords.txt", "LICENSE", f"src/{NAME}.h",
                     f"examples/{EXAMPLE}/{EXAMPLE}.ino", *(f"src/{header}" for header in headers)}
    assert (library / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    for header in headers:
        assert (library / "src" / header).read_bytes() == (node / header).read_bytes()


def test_keywords_are_names_of_the_library(library: Path) -> None:
    text = "".join(path.read_text() for path in (library / "src").rglob("*.h"))
    for line in (library / "keywords.txt").read_text().splitlines():
        word, kind = line.split("\t")  # one tab: the IDE ignores a line with another separator
        assert kind in {"KEYWORD1", "KEYWORD2", "LITERAL1"}
        assert re.search(rf"\b{word}\b", text), word


def test_the_same_sources_make_the_same_zip(tmp_path: Path) -> None:
    main(["-o", str(tmp_path / "a.zip")])
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_what_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["-o", str(tmp_path / "taken")])
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"{tmp_path / 'taken'}: Is a directory\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "taken"]


@pytest.mark.parametrize("edges", [1, 2])
@pytest.mark.parametrize(("compiler", "flags"), [("g++", ()), ("avr-g++", ("-mmcu=atmega328p",))])
def test_the_example_is_compiled(library: Path, tmp_path: Path, compiler: str, flags: tuple[str, ...],
                                 edges: int) -> None:
    """As the IDE compiles a sketch: C++ with Arduino.h before it and GNU extensions, here with warnings as errors."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here; on Debian: apt-get install g++ gcc-avr")
    (tmp_path / "Arduino.h").write_text(ARDUINO_H)
    done = subprocess.run(
        [compiler, *flags, "-std=gnu++11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-DHM_EDGES={edges}",
         f"-I{tmp_path}", f"-I{library / 'src'}", "-include", "Arduino.h", "-x", "c++",
         library / "examples" / EXAMPLE / f"{EXAMPLE}.ino"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
