"""The node library: what it writes to a port, and when."""

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from port_reader import Event, read_events, read_nibbles, read_writes

from tests.patience import patience

HEADER = Path(__file__).parents[2] / "node" / "hypermon.h"

#: Every length, every nibble, fillers between, on two ports; then what must be refused.
EVENTS = r"""
#define _POSIX_C_SOURCE 200809L
#include "hypermon.h"

int main(int argc, char **argv)
{
    hm_port ports[2];
    hm_port *both[2];
    unsigned char payload[16];
    unsigned i, k;
    uint64_t start = hm_virtual_now();
    FILE *out = fopen(argv[argc - 1], "w");
    for (i = 0; i < 2; i++) {
        both[i] = &ports[i];
        if (out == NULL || hm_virtual_open(both[i], 10000) != 0)
            return 1;
    }
    for (i = 0; i <= HM_PAYLOAD_MAX; i++) {
        for (k = 0; k < i; k++)
            payload[k] = (unsigned char)(17 * k + i);
        if (hm_event(both[i & 1], 0xf0 - i, i ? payload : NULL, i) != 0)
            return 2;
        hm_nibble(both[i & 1], 0);
    }
    if (hm_event(both[0], 1, payload, HM_PAYLOAD_MAX + 1) != -1)
        return 3;
    hm_put16(payload, 0x1234);
    hm_put32(payload + 2, 0x89abcdef);
    hm_event(both[0], 0x1ff, payload, 6);
    if (hm_virtual_save(out, both, 2, start) != 0)
        return 4;
    for (i = 0; i < 2; i++)
        hm_virtual_close(both[i]);
    return fclose(out) != 0;
}
"""


@pytest.mark.parametrize("language", ["c99", "c11", "g++11", "g++17"])
@pytest.mark.parametrize("edges", [1, 2])
def test_events_of_every_length(compile_c, tmp_path: Path, language: str, edges: int) -> None:
    program = compile_c(EVENTS, f"-DHM_EDGES={edges}", language=language)
    out = tmp_path / "out.csv"
    subprocess.run([program, out], check=True, timeout=patience(20))
    nibbles = read_nibbles(read_writes(out), edges)
    events = {node: [event[1:] for event in read_events(nibbles[node])] for node in (0, 1)}
    sent = [Event(0, 0xf0 - i, bytes((17 * k + i) & 255 for k in range(i)))[1:] for i in range(15)]
    assert events[1] == sent[1::2]
    assert events[0] == [*sent[0::2], (0xff, bytes.fromhex("3412efcdab89"))]


@pytest.mark.parametrize(("edges", "clock_hz", "hold_ns"),
                         [(1, 100_000_000, 21), (2, 100_000_000, 21), (1, 5_000_000, 401), (2, 150_000_000, 15)])
def test_a_value_stays_two_clocks(compile_c, tmp_path: Path, edges: int, clock_hz: int, hold_ns: int) -> None:
    program = compile_c(EVENTS, f"-DHM_EDGES={edges}", f"-DHM_CLOCK_HZ={clock_hz}u")
    out = tmp_path / "out.csv"
    subprocess.run([program, out], check=True, timeout=patience(20))
    writes = read_writes(out)
    assert [w[:2] for w in writes] == sorted(w[:2] for w in writes)
    for node in (0, 1):
        times = [w.time_ns for w in writes if w.node == node]
        assert times[0] >= 0
        assert min(b - a for a, b in pairwise(times)) >= hold_ns


def test_one_edge_writes_twice_and_two_edges_once(compile_c, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    for edges, values in ((1, [1, 17, 3, 19, 15, 31, 0, 16]), (2, [17, 3, 31, 0])):
        program = compile_c(r"""
            #define _POSIX_C_SOURCE 200809L
            #include "hypermon.h"
            int main(int argc, char **argv)
            {
                hm_port port, *ports = &port;
                const uint64_t start = hm_virtual_now();
                hm_virtual_open(&port, 8);
                hm_event(&port, 0xf3, NULL, 0);
                hm_nibble(&port, 0);
                return hm_virtual_save(fopen(argv[argc - 1], "w"), &ports, 1, start);
            }""", f"-DHM_EDGES={edges}")
        subprocess.run([program, out], check=True, timeout=patience(20))
        assert [w.port for w in read_writes(out)] == values


def test_a_full_buffer_is_not_silent(compile_c, tmp_path: Path) -> None:
    program = compile_c(r"""
        #define _POSIX_C_SOURCE 200809L
        #include "hypermon.h"
        int main(void)
        {
            hm_port port, *ports = &port;
            const uint64_t start = hm_virtual_now();
            if (hm_virtual_open(&port, 7) != 0)
                return 1;
            hm_event(&port, 1, NULL, 0);
            if (port.missing || hm_virtual_save(stdout, &ports, 1, start) != 0)
                return 2;
            hm_nibble(&port, 1);
            if (port.missing != 1 || port.count != 7 || hm_virtual_save(stdout, &ports, 1, start) != -1)
                return 3;
            return errno != EOVERFLOW;
        }""")
    subprocess.run([program], check=True, timeout=patience(20), stdout=subprocess.DEVNULL)


def test_a_write_before_the_start_is_refused(compile_c) -> None:
    program = compile_c(r"""
        #define _POSIX_C_SOURCE 200809L
        #include "hypermon.h"
        int main(void)
        {
            hm_port port, *ports = &port;
            hm_virtual_open(&port, 7);
            hm_nibble(&port, 1);
            return !(hm_virtual_save(stdout, &ports, 1, hm_virtual_now()) == -1 && errno == EINVAL);
        }""")
    subprocess.run([program], check=True, timeout=patience(20), stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(("edges", "stop", "pause"), [(1, 10, 40), (2, 6, 20)])
def test_a_torn_event_is_taken_back(compile_c, tmp_path: Path, edges: int, stop: int, pause: int) -> None:
    """The clock stands still for 6 ms in the second event, and for 4 ms in the third: only the second is
    written again, and no strobe is wrong behind it."""
    program = compile_c(r"""
        #define _POSIX_C_SOURCE 200809L
        #include <time.h>
        static long ticks;
        static int scripted(clockid_t id, struct timespec *now)
        {
            (void)id;
            ticks++;
            now->tv_sec = 0;
            now->tv_nsec = 100 * ticks + (ticks > STOP ? 6000000 : 0) + (ticks > PAUSE ? 4000000 : 0);
            return 0;
        }
        #define clock_gettime scripted
        #include "hypermon.h"
        int main(int argc, char **argv)
        {
            hm_port port, *ports = &port;
            hm_virtual_open(&port, 100);
            hm_event(&port, 0x21, NULL, 0);
            hm_event(&port, 0x32, "\x45\x67", 2);
            hm_event(&port, 0x43, "\x45\x67\x89", 3);
            if (port.torn != 1)
                return 1;
            return hm_virtual_save(fopen(argv[argc - 1], "w"), &ports, 1, 0);
        }""", f"-DHM_EDGES={edges}", f"-DSTOP={stop}", f"-DPAUSE={pause}")
    out = tmp_path / "out.csv"
    subprocess.run([program, out], check=True, timeout=patience(20))
    events = read_events(read_nibbles(read_writes(out), edges)[0])
    assert [e[1:] for e in events] == [(0x21, b""), (0x32, b"\x45\x67"), (0x43, b"\x45\x67\x89")]
    assert events[0].time_ns < 1100 < 6_000_000 < events[1].time_ns < events[2].time_ns < 6_010_000


def test_a_target_of_ones_own(compile_c) -> None:
    """The seam is a type and three functions; the events come out of it as out of any other."""
    program = compile_c(r"""
        #include <stdio.h>
        #define HM_TARGET 2
        typedef struct hm_port { unsigned value; int masked; } hm_port;
        static void hm_port_write(hm_port *port, unsigned before, unsigned value)
        {
            printf("%u>%u%c ", before, value, port->masked ? 'm' : '-');
        }
        static void hm_port_begin(hm_port *port) { port->masked = 1; }
        static int hm_port_end(hm_port *port) { port->masked = 0; return 0; }
        #include "hypermon.h"
        int main(void)
        {
            hm_port port = { 0, 0 };
            hm_event(&port, 0x5a, "\x0f", 1);
            hm_nibble(&port, 0);
            return 0;
        }""", "-DHM_EDGES=2")
    said = subprocess.run([program], check=True, timeout=patience(20), capture_output=True, text=True).stdout
    assert said.split() == ["0>18m", "18>10m", "10>21m", "21>15m", "15>16m", "16>0m"]


def test_a_word_is_eight_nibbles_the_lowest_first(compile_c, tmp_path: Path) -> None:
    for edges in (1, 2):
        program = compile_c(r"""
            #define _POSIX_C_SOURCE 200809L
            #include "hypermon.h"
            int main(int argc, char **argv)
            {
                hm_port port, *ports = &port;
                const uint64_t start = hm_virtual_now();
                hm_virtual_open(&port, 100);
                hm_word(&port, 0x89abcdefu);
                hm_nibble(&port, 3);
                return hm_virtual_save(fopen(argv[argc - 1], "w"), &ports, 1, start);
            }""", f"-DHM_EDGES={edges}")
        out = tmp_path / f"{edges}.csv"
        subprocess.run([program, out], check=True, timeout=patience(20))
        nibbles = [value for _, value in read_nibbles(read_writes(out), edges)[0]]
        assert nibbles == [0xf, 0xe, 0xd, 0xc, 0xb, 0xa, 9, 8, 3]


def test_no_target_needs_nothing(compile_c) -> None:
    program = compile_c(r"""
        #define HM_TARGET 0
        #include "hypermon.h"
        int main(void)
        {
            hm_port port = { 0 };
            return hm_event(&port, 1, "ab", 2) || hm_event(&port, 1, NULL, 15) != -1;
        }""")
    subprocess.run([program], check=True, timeout=patience(20))


@pytest.mark.parametrize(("flag", "message"), [("-DHM_EDGES=3", "HM_EDGES must be"),
                                               ("-DHM_TARGET=99", "HM_TARGET must be"),
                                               ("-DNO_POSIX", "define _POSIX_C_SOURCE")])
def test_says_what_is_missing(tmp_path: Path, flag: str, message: str) -> None:
    source = tmp_path / "wrong.c"
    source.write_text('#ifndef NO_POSIX\n#define _POSIX_C_SOURCE 200809L\n#endif\n#include "hypermon.h"\n')
    done = subprocess.run(["cc", "-std=c99", flag, f"-I{HEADER.parent}", "-c", str(source), "-o", "/dev/null"],
                          capture_output=True, text=True)
    assert done.returncode != 0
    assert message in done.stderr
