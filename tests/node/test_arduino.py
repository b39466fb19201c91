"""The node library as a library for Arduino, what its zip has, and its examples; and as one for PlatformIO."""

import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from emulators.freertos_kernel import kernel
from hypermon.host.dictionary.log_strings import elf_strings
from hypermon.sim.emulate.arduino import NAME, main

from tests.patience import patience
from tests.programs import PROGRAMS, MissingError, working

ROOT = Path(__file__).parents[2]
EXAMPLES = ("HypermonBlink", "HypermonLog", "HypermonTasks")
COMPILERS = [("g++", ()), ("avr-g++", ("-mmcu=atmega328p",))]

#: What the sketch and the library take of Arduino's header, with those of its macros whose names are near to theirs.
ARDUINO_H = r"""
#include <stdint.h>
#include <stddef.h>
#define LOW 0x0
#define HIGH 0x1
#define OUTPUT 0x1
#define LED_BUILTIN 13
#define A0 14
#define bit(b) (1UL << (b))
#define word(...) makeWord(__VA_ARGS__)
#define min(a,b) ((a)<(b)?(a):(b))
#define max(a,b) ((a)>(b)?(a):(b))
#define interrupts() __asm__ volatile ("nop")
#define noInterrupts() __asm__ volatile ("nop")
void pinMode(uint8_t pin, uint8_t mode);
void digitalWrite(uint8_t pin, uint8_t value);
void delay(unsigned long ms);
#ifdef __cplusplus
extern "C" int analogRead(uint8_t pin);
#endif
"""
#: The configuration of a kernel's library, with the line that HypermonFreeRTOS.h asks for.
CONFIG_H = """
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#include <avr/io.h>
#define configCPU_CLOCK_HZ 16000000UL
#define configTICK_RATE_HZ 62
#define configUSE_16_BIT_TICKS 1
#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 192
#define configTOTAL_HEAP_SIZE 1024
#define configMAX_TASK_NAME_LEN 8
#define configUSE_TRACE_FACILITY 1
#define INCLUDE_vTaskDelay 1
#include <HypermonFreeRTOS.h>
#endif
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
    node = ROOT / "node"
    headers = {str(path.relative_to(node)) for path in [node / "hypermon.h", *(node / "hypermon").glob("*.h")]}
    assert len(headers) > 10
    assert files == {"library.properties", "keywords.txt", "LICENSE", f"src/{NAME}.h",
                     "src/HypermonFreeRTOS.h", "extras/freertos.toml",
                     *(f"examples/{example}/{example}.ino" for example in EXAMPLES),
                     *(f"src/{header}" for header in headers)}
    assert (library / "extras" / "freertos.toml").read_bytes() == (node / "freertos.toml").read_bytes()
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


def call(*command: str | Path) -> None:
    try:
        if command[0] in PROGRAMS:
            working(str(command[0]))
    except MissingError as error:
        pytest.skip(str(error))
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0, done.stderr


def sketch(library: Path, folder: Path, example: str, compiler: str, *flags: str | Path) -> Path:
    """The object of an example, as the IDE compiles it: C++ with Arduino.h before it and GNU extensions; warnings as
    errors."""
    (folder / "Arduino.h").write_text(ARDUINO_H)
    out = folder / "sketch.o"
    call(compiler, *flags, "-std=gnu++11", "-Os", "-c", "-Wall", "-Wextra", "-Werror", f"-I{folder}",
         f"-I{library / 'src'}", "-include", "Arduino.h", "-x", "c++",
         library / "examples" / example / f"{example}.ino", "-o", out)
    return out


@pytest.mark.parametrize("edges", [1, 2])
@pytest.mark.parametrize(("compiler", "flags"), COMPILERS)
@pytest.mark.parametrize("example", EXAMPLES[:2])
def test_an_example_is_compiled(library: Path, tmp_path: Path, example: str, compiler: str, flags: tuple[str, ...],
                                edges: int) -> None:
    sketch(library, tmp_path, example, compiler, *flags, f"-DHM_EDGES={edges}")


def test_the_example_of_log_lines_has_strings_for_the_dictionary(library: Path, tmp_path: Path) -> None:
    sketch(library, tmp_path, "HypermonLog", "avr-g++", "-mmcu=atmega328p")
    call("avr-gcc", "-mmcu=atmega328p", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-esetup",
         tmp_path / "sketch.o", "-o", tmp_path / "sketch.elf")
    assert elf_strings(tmp_path / "sketch.elf") == {0: "input %hu: %hd of 1023"}


def test_the_example_of_tasks_and_the_kernel(library: Path, tmp_path: Path) -> None:
    """The sketch defines what the kernel's hooks need, and the kernel, with its port to AVR, is compiled with them."""
    try:
        at = kernel(tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    (tmp_path / "FreeRTOSConfig.h").write_text(CONFIG_H)
    (tmp_path / "Arduino_FreeRTOS.h").write_text('#include "FreeRTOS.h"\n#include "task.h"\n')
    port = at / "portable" / "ThirdParty" / "GCC" / "ATmega"
    flags = ("-mmcu=atmega328p", "-isystem", at / "include", "-isystem", port)
    objects = [sketch(library, tmp_path, "HypermonTasks", "avr-g++", *flags)]
    for name in ("tasks.c", "queue.c"):
        objects.append(tmp_path / f"{name}.o")
        call("avr-gcc", *flags, "-std=gnu11", "-Os", "-c", "-w", f"-I{tmp_path}", f"-I{library / 'src'}", at / name,
             "-o", objects[-1])
    symbols = [subprocess.run(["avr-nm", one], check=True, capture_output=True, text=True).stdout for one in objects]
    for name, of in (("hm_freertos_port", symbols[1]), ("hm_freertos_queues", symbols[2])):
        assert f" U {name}\n" in of
        assert f" B {name}\n" in symbols[0]


@pytest.mark.parametrize(("compiler", "flags", "saved"), [
    ("avr-g++", ("-mmcu=atmega328p",), "0x3f"),
    ("arm-none-eabi-g++", ("-mcpu=cortex-m0plus", "-mthumb"), "primask")])
def test_interrupts_stay_off_where_they_were(library: Path, tmp_path: Path, compiler: str, flags: tuple[str, ...],
                                             saved: str) -> None:
    """A handler that writes an event must not turn interrupts on: the flag is saved, and Arduino's functions unused."""
    (tmp_path / "Arduino.h").write_text(ARDUINO_H.replace('volatile ("nop")', 'volatile ("turned_on")'))
    call(compiler, *flags, "-std=gnu++11", "-Os", "-S", f"-I{tmp_path}", f"-I{library / 'src'}", "-include",
         "Arduino.h", "-x", "c++", library / "examples" / "HypermonBlink" / "HypermonBlink.ino", "-o",
         tmp_path / "sketch.s")
    text = (tmp_path / "sketch.s").read_text()
    assert "turned_on" not in text
    assert text.count(saved) >= 2


# ------------------------------------------------------------------------------------ PlatformIO

NODE = ROOT / "node"
MANIFEST = json.loads((NODE / "library.json").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: A program with the default target, in memory.
PLATFORMIO = """
#include <hypermon.h>
int main(void)
{
    hm_port port;
    hm_virtual_open(&port, 16);
    hm_event(&port, 3, "ab", 2);
    return 0;
}
"""


def exported() -> set[str]:
    """The files of the node library that the manifest exports."""
    found = set()
    for pattern in MANIFEST["export"]["include"]:
        paths = [path for path in NODE.glob(pattern) for path in ([path] if path.is_file() else path.rglob("*"))]
        assert paths, pattern
        found |= {str(path.relative_to(NODE)) for path in paths}
    return found


def test_the_manifest_is_of_this_version() -> None:
    """Members and forms that PlatformIO's `library.json` prescribes."""
    assert MANIFEST["version"] == PROJECT["version"]
    assert MANIFEST["license"] == PROJECT["license"]
    assert MANIFEST["authors"] == PROJECT["authors"]
    assert re.fullmatch(r"[^:;/,@<>]{1,100}", MANIFEST["name"])
    assert re.fullmatch(r"[ -~]{1,1000}", MANIFEST["description"])
    assert MANIFEST["frameworks"] == MANIFEST["platforms"] == "*"


def test_its_files_are_there() -> None:
    files = exported()
    assert {"hypermon.h", "library.json"} <= files
    assert {f"hypermon/{path.name}" for path in (NODE / "hypermon").iterdir()} <= files
    folders = [".", *(flag.removeprefix("-I") for flag in MANIFEST["build"]["flags"])]
    assert MANIFEST["build"]["includeDir"] == "."
    for header in MANIFEST["headers"]:
        assert any(str(Path(folder) / header) in files for folder in folders), header
    for example in MANIFEST["examples"]:
        assert {f"{example['base']}/{name}" for name in example["files"]} <= files
    assert {name for name in files if name.endswith(".ino")} == {
        f"{example['base']}/{name}" for example in MANIFEST["examples"] for name in example["files"]}
    # All of it is in headers: sources of other environments are not compiled.
    assert MANIFEST["build"]["srcFilter"] == ["-<*>"]
    assert [name for name in files if name.endswith((".c", ".cpp", ".S"))] == []


def test_what_platformio_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_c) -> None:
    """`pio pkg pack` accepts the manifest, and packs these files; a program compiles with nothing else.

    PlatformIO looks up the licence on the network, so the manifest is packed without it.
    """
    pio = shutil.which("pio")
    if pio is None:
        pytest.skip("no pio here; pip install platformio")
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path / "core"))
    monkeypatch.setenv("PLATFORMIO_SETTING_ENABLE_TELEMETRY", "no")
    shutil.copytree(NODE, tmp_path / "node", ignore=shutil.ignore_patterns("target", "__pycache__"))
    (tmp_path / "node" / "library.json").write_text(json.dumps(
        {name: value for name, value in MANIFEST.items() if name != "license"}))
    said = subprocess.run([pio, "pkg", "pack", tmp_path / "node", "-o", tmp_path], capture_output=True, text=True,
                          timeout=patience(60), check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    [packed] = tmp_path.glob("*.tar.gz")
    assert packed.name == f"{MANIFEST['name']}-{PROJECT['version']}.tar.gz"
    with tarfile.open(packed) as archive:
        assert set(archive.getnames()) == exported()
        archive.extractall(tmp_path / "library", filter="data")
    program = compile_c(PLATFORMIO, f"-I{tmp_path / 'library'}", language="c11")
    assert subprocess.run([program], check=False, timeout=patience(20)).returncode == 0
