"""The node library over fewer wires: the bytes that it sends are those that a model of the coding sends."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from cross import NODE

sys.path.append(str(Path(__file__).parents[1] / "hdl" / "harness"))

from senders import event_bytes

BYTES = r"""
#include <stdio.h>
#include <stdlib.h>
#define HM_INTERRUPTS 0
#include <stdint.h>
%s
#include "hypermon.h"
static hm_port port;
int main(int argc, char **argv)
{
    unsigned char payload[32];
    int i, result;
    hm_bytes_open(&port);
    for (i = 2; i < argc; i++)
        payload[i - 2] = (unsigned char)atoi(argv[i]);
    if (argv[1][0] == 'w') {
        hm_word(&port, 0x89abcdefu);
        hm_byte(&port, 0x123);
        return 0;
    }
    result = hm_event(&port, (unsigned)atoi(argv[1]), argc > 2 ? payload : NULL, (size_t)(argc - 2));
    return result ? 7 : 0;
}
"""
PUT = "#define HM_BYTE_PUT(byte) putchar((int)(byte))"
#: A fake register: there is room at each third look, and a store is seen at the next look.
REGISTERS = r"""
static uint32_t data = 0x100, looks;
static uint32_t *status(void)
{
    static uint32_t now;
    if (data != 0x100) {
        putchar((int)data);
        data = 0x100;
    }
    now = ++looks %% 3 ? %s : %s;
    return &now;
}
static void last(void) { status(); }
#define HM_BYTE_DATA &data
#define HM_BYTE_STATUS status()
#define %s 0x20u
"""


def built(folder: Path, source: str, *flags: str, language: str = "c") -> Path:
    (folder / f"node.{language}").write_text(source)
    compiler = ["cc", "-std=c99"] if language == "c" else ["c++", "-std=c++17"]
    subprocess.run([*compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-I{NODE}", *flags,
                    folder / f"node.{language}", "-o", folder / "node"], check=True)
    return folder / "node"


def sent(program: Path, *words: object) -> bytes:
    return subprocess.run([program, *map(str, words)], check=True, capture_output=True).stdout


@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize("target", ["SPI", "UART"])
def test_events_are_those_of_the_model(tmp_path: Path, target: str, language: str) -> None:
    program = built(tmp_path, BYTES % PUT, f"-DHM_TARGET=HM_TARGET_{target}", language=language)
    rng = random.Random(1)
    for size in range(15):
        payload = bytes(rng.getrandbits(8) for _ in range(size))
        event = rng.getrandbits(8)
        assert sent(program, event, *payload) == event_bytes(bytes([event]) + payload)
    assert subprocess.run([program, "1", *"0" * 15], capture_output=True, check=False).stdout == b""
    assert subprocess.run([program, "1", *"0" * 15], capture_output=True, check=False).returncode == 7
    assert sent(program, "w") == b"\xef\xcd\xab\x89\x23"


@pytest.mark.parametrize(("name", "no", "yes"), [
    ("HM_BYTE_ROOM", "0x0fu", "0x20u"), ("HM_BYTE_FULL", "0x20u", "0x0fu")])
def test_registers_with_a_flag(tmp_path: Path, name: str, no: str, yes: str) -> None:
    """No byte is stored while there is no room."""
    source = (BYTES % (REGISTERS % (no, yes, name))).replace("return result", "last();\n    return result")
    program = built(tmp_path, source, "-DHM_TARGET=HM_TARGET_UART")
    assert sent(program, 200, 1, 2, 3) == event_bytes(bytes([200, 1, 2, 3]))


def test_a_target_without_registers_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "node.c").write_text(
        "#define HM_INTERRUPTS 0\n#define HM_TARGET HM_TARGET_SPI\n#include \"hypermon.h\"\n")
    done = subprocess.run(["cc", "-c", f"-I{NODE}", tmp_path / "node.c", "-o", tmp_path / "node.o"],
                          capture_output=True, text=True, check=False)
    assert "HM_BYTE_ROOM or HM_BYTE_FULL must say" in done.stderr


ITM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
static uint32_t ter, tcr, others[8], ready;
static uint32_t stim[32], looks;
static uint32_t *word(uint32_t address)
{
    printf("%08x ", address);
    if (address < 0xe0000080u)
        return stim[address / 4 & 31] = ++looks % 3 == 0, &stim[address / 4 & 31];
    return address == 0xe0000e00u ? &ter : address == 0xe0000e80u ? &tcr : &others[address >> 4 & 7];
}
#define HM_ITM_WORD(address) (*word(address))
#define HM_ITM_HALF(address) (*(printf("half "), (uint16_t *)word(address)))
#define HM_ITM_BYTE(address) (*(printf("byte "), (uint8_t *)word(address)))
#define HM_TARGET HM_TARGET_ITM
#define HM_CPU_HZ 72000000u
#define HM_SWO_BAUD 2000000u
#include "hypermon.h"
int main(int argc, char **argv)
{
    static const unsigned char payload[4] = {0x11, 0x22, 0x33, 0x44};
    hm_port port;
    const unsigned id = (unsigned)atoi(argv[1]);
    int result;
    (void)ready;
    if (argc > 3) {
        hm_itm_open(&port);
        printf("open %u %x\n", others[1] , ter);
    }
    printf("\n");
    result = hm_event(&port, id, payload, (size_t)atoi(argv[2]));
    printf("\n%d %x", result, id < 32 ? stim[id] : 0);
    return 0;
}
"""


@pytest.mark.parametrize(("size", "value", "how"), [(1, 0x11, "byte "), (2, 0x2211, "half "), (4, 0x44332211, "")])
def test_stimulus_ports(tmp_path: Path, size: int, value: int, how: str) -> None:
    """One store of the payload's width, when the FIFO has room; nothing while it is not enabled."""
    program = built(tmp_path, ITM)
    for port in (0, 7, 31):
        _, stores, result = sent(program, port, size, "open").decode().split("\n")[-3:]
        assert stores.endswith(f"{how}{0xe0000000 + 4 * port:08x} ")
        assert stores.count(f"{0xe0000000 + 4 * port:08x}") == 4, "three looks, and one store"
        code, stored = result.split()
        assert code == "0"
        mask = (1 << 8 * size) - 1
        assert int(stored, 16) & mask == value
        closed = sent(program, port, size).decode().split("\n")
        assert closed[-1].split()[0] == "-1"
        assert f"{0xe0000000 + 4 * port:08x}" not in closed[-2]


@pytest.mark.parametrize(("port", "size"), [(32, 1), (0, 0), (0, 3), (0, 5)])
def test_what_the_itm_cannot_send(tmp_path: Path, port: int, size: int) -> None:
    assert sent(built(tmp_path, ITM), port, size, "open").decode().split("\n")[-1].startswith("-1")
