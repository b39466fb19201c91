"""The node library through CMake: a program of the host, and the example for the Pico SDK."""

import re
import subprocess
from pathlib import Path

import pytest
from port_reader import Event, read_events, read_nibbles, read_writes

from tests.host.external.readers import needs
from tests.patience import patience

ROOT = Path(__file__).parents[2]
NODE, EXAMPLE = ROOT / "node", ROOT / "examples" / "pico"
CMAKELISTS = NODE / "CMakeLists.txt"

#: How a project gets the targets. A FetchContent with a source that is here already needs no network.
WAYS = {
    "add_subdirectory": f'add_subdirectory("{NODE}" hypermon_node)',
    "FetchContent": f"""
        include(FetchContent)
        FetchContent_Declare(hypermon SOURCE_DIR "{ROOT}" SOURCE_SUBDIR node)
        FetchContent_MakeAvailable(hypermon)"""}
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(program C)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
GET
add_executable(program main.c)
target_compile_definitions(program PRIVATE _POSIX_C_SOURCE=200809L HM_EDGES=2)
target_link_libraries(program PRIVATE hypermon::TARGET)
"""

VIRTUAL = r"""
#include "hypermon.h"
#if HM_TARGET != HM_TARGET_VIRTUAL
#error "the target's macro is missing"
#endif
int main(int argc, char **argv)
{
    hm_port port, *ports = &port;
    const uint64_t start = hm_virtual_now();
    hm_virtual_open(&port, 20);
    hm_event(&port, 17, "abc", 3);
    return hm_virtual_save(fopen(argv[argc - 1], "w"), &ports, 1, start);
}
"""

NONE = r"""
#include "hypermon.h"
#if HM_TARGET != HM_TARGET_NONE
#error "the target's macro is missing"
#endif
int main(void)
{
    hm_port port = { 0 };
    return hm_event(&port, 17, "abc", 3);
}
"""


def run_cmake(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([needs("cmake"), *arguments], capture_output=True, text=True, timeout=patience(120))


def project(target: str, way: str = "add_subdirectory") -> str:
    """The text of a project's CMakeLists.txt."""
    return PROJECT.replace("TARGET", target).replace("GET", WAYS[way])


def build(folder: Path, target: str, source: str, way: str = "add_subdirectory") -> Path:
    """The program that a project in the folder makes of the source."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(project(target, way))
    (folder / "main.c").write_text(source)
    for arguments in (("-S", folder, "-B", folder / "build"), ("--build", folder / "build")):
        done = run_cmake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "program"


@pytest.mark.parametrize("way", WAYS)
def test_a_program_of_the_host(tmp_path: Path, way: str) -> None:
    out = tmp_path / "out.csv"
    subprocess.run([build(tmp_path / "virtual", "virtual", VIRTUAL, way), out], check=True, timeout=patience(20))
    assert [event[1:] for event in read_events(read_nibbles(read_writes(out), 2)[0])] == [Event(0, 17, b"abc")[1:]]


def test_a_program_that_writes_nowhere(tmp_path: Path) -> None:
    subprocess.run([build(tmp_path / "none", "none", NONE)], check=True, timeout=patience(20))


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(project("rp2041"))
    (tmp_path / "main.c").write_text(NONE)
    done = run_cmake("-S", tmp_path, "-B", tmp_path / "build")
    assert done.returncode != 0
    assert "hypermon::rp2041" in done.stderr


def test_every_target_of_the_header_is_a_target_of_cmake() -> None:
    header = set(re.findall(r"^#define HM_TARGET_(\w+) \d+ ", (NODE / "hypermon.h").read_text(), re.MULTILINE))
    [names] = re.findall(r"^foreach\(target ([^)]*)\)$", CMAKELISTS.read_text(), re.MULTILINE)
    assert {name.upper() for name in names.split()} == header


#: As much of the SDK as the example's project names. main.c is compiled, not linked, against stubs of its functions.
SDK = {
    "external/pico_sdk_import.cmake": """
        set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
        set(CMAKE_SYSTEM_NAME Generic)
        set(CMAKE_C_COMPILER arm-none-eabi-gcc)
        set(CMAKE_CXX_COMPILER arm-none-eabi-gcc)
        set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
        macro(pico_sdk_init)
          add_library(pico_stdlib INTERFACE)
          add_library(hardware_pio INTERFACE)
          target_include_directories(pico_stdlib INTERFACE "${PICO_SDK_PATH}/include")
          target_compile_options(pico_stdlib INTERFACE -mcpu=cortex-m0plus -mthumb -ffreestanding -Wall -Wextra -Werror)
          target_link_options(pico_stdlib INTERFACE -nostdlib -Wl,-r)
        endmacro()
        function(pico_add_extra_outputs target)
          if(NOT TARGET ${target})
            message(FATAL_ERROR "no ${target}")
          endif()
        endfunction()
        """,
    "include/hardware/clocks.h": "#define SYS_CLK_KHZ 125000u\n",
    "include/pico/stdlib.h": "#include <stdint.h>\nvoid sleep_ms(uint32_t ms);\n",
    "include/hardware/pio.h": """
        #include <stdint.h>
        typedef struct pio_hw pio_hw_t;
        typedef pio_hw_t *PIO;
        #define pio0 ((PIO)0x50200000u)
        typedef struct pio_program { const uint16_t *instructions; uint8_t length; int8_t origin; } pio_program_t;
        int pio_add_program_at_offset(PIO pio, const pio_program_t *program, unsigned offset);
        void pio_sm_claim(PIO pio, unsigned machine);
        """,
}


def test_the_example_for_the_pico(tmp_path: Path) -> None:
    needs("arm-none-eabi-gcc")
    for name, text in SDK.items():
        path = tmp_path / "sdk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for arguments in (("-S", EXAMPLE, "-B", tmp_path / "build", f"-DPICO_SDK_PATH={tmp_path / 'sdk'}"),
                      ("--build", tmp_path / "build")):
        done = run_cmake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    symbols = subprocess.run(["arm-none-eabi-nm", tmp_path / "build" / "node"], capture_output=True, text=True,
                             check=True).stdout
    assert {"U sleep_ms", "U pio_sm_claim", "U pio_add_program_at_offset"} <= {
        line.strip() for line in symbols.splitlines()}


def test_the_example_says_that_the_sdk_is_missing(tmp_path: Path) -> None:
    done = run_cmake("-S", EXAMPLE, "-B", tmp_path / "build", "-DPICO_SDK_PATH=/nowhere")
    assert done.returncode != 0
    assert "set PICO_SDK_PATH" in done.stderr
