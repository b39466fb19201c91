"""What an event costs the node that writes it, for each target of the node library, in one table.

    nibble, word   one item
    event          an id: 3 nibbles
    + 2 bytes      an id and two bytes: 7 nibbles

RP2040: clocks from a function's first instruction to its return, in an emulator that counts them (rp2040js), of the
compiled firmware. Cortex-M and RISC-V: instructions, run one by one (unicorn); clocks are more by what the bus
takes for a store. This machine: nanoseconds, the quickest of many rounds, all ways in one process; the virtual
port waits until a board of 100 MHz has seen each value for two clocks.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "node")]

from cross import MACHINES, NODE, STACK, Program  # noqa: E402
from emulators.rp2040 import play  # noqa: E402
from hypermon.sim.emulate.firmware import link  # noqa: E402

from tests.programs import MissingError  # noqa: E402

ITEMS = ("nibble", "event", "event2", "word")
Costs = dict[str, float]

FUNCTIONS = {
    "nibble": "void nibble(unsigned value); void nibble(unsigned value) { hm_nibble(&port, value); }",
    "event": "int event(unsigned id); int event(unsigned id) { return hm_event(&port, id, NULL, 0); }",
    "event2": "int event2(unsigned id, const unsigned char *bytes);\n"
              "int event2(unsigned id, const unsigned char *bytes) { return hm_event(&port, id, bytes, 2); }",
    "word": "void word(unsigned long value); void word(unsigned long value) { hm_word(&port, (uint32_t)value); }"}
CALLS = {"nibble": "nibble(5);", "event": "event(17);", "event2": 'event2(17, (const unsigned char *)"ab");',
         "word": "word(0x12345678);"}
#: Keeps a call away from the one before: the PIO must have finished.
PAUSE = """static void rest(void)
{
    unsigned i;
    for (i = 0; i < 500; i++)
        __asm__ volatile ("nop");
}
"""


def source(items: tuple[str, ...]) -> str:
    return '#include "hypermon.h"\nhm_port port;\n' + "\n".join(FUNCTIONS[item] for item in items) + "\n"


def rp2040(folder: Path, items: tuple[str, ...], *flags: str) -> Costs:
    """Clocks of a call of each, the second one of each function."""
    calls = "\n".join(f"    rest();\n    {CALLS[item]}" for item in items)
    functions, program = folder / "functions.c", folder / "main.c"
    functions.write_text(source(items) + "void begin_port(void);\nvoid begin_port(void) { hm_rp2040_open(&port); }\n")
    declared = "".join(FUNCTIONS[item].partition(";")[0] + ";\n" for item in items)
    program.write_text(f"{declared}void begin_port(void);\nint main(void);\n{PAUSE}int main(void)\n{{\n"
                       f"    begin_port();\n{calls}\n{calls}\n    return 0;\n}}\n")
    played = play(link([functions, program], b"", *flags), folder, limit=1_000_000, functions=items)
    return {item: played.calls[item][1] for item in items}


def instructions(machine: str, folder: Path, *flags: str) -> Costs:
    run = Program(MACHINES[machine], source(ITEMS), folder, 0x4800_0418, "-DHM_TARGET=HM_TARGET_REGISTER",
                  "-DHM_ADDRESS=0x48000418u", "-DHM_SHIFT=3", *flags)
    return {"nibble": run.call("nibble", 5).instructions, "event": run.call("event", 17).instructions,
            "event2": run.call("event2", 17, STACK, data=b"ab").instructions,
            "word": run.call("word", 0x12345678).instructions}


@contextmanager
def tracing(folder: Path) -> Iterator[bool]:
    """LTTng-UST, recording; False where it cannot be had."""
    lttng, daemon = shutil.which("lttng"), shutil.which("lttng-sessiond")
    if lttng is None or daemon is None:
        print("LTTng-UST is left out: no lttng here; on Debian: apt-get install lttng-tools")
        yield False
        return
    environment = {**os.environ, "LTTNG_HOME": str(folder)}

    def said(*words: str) -> bool:
        return subprocess.run([lttng, "--no-sessiond", *words], env=environment, capture_output=True).returncode == 0

    running = subprocess.Popen([daemon, "--no-kernel"], env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 20
        while not said("list") and time.monotonic() < until:
            time.sleep(0.2)
        ready = all(said(*words) for words in (
            ("create", "hypermon-cost", f"--output={folder / 'trace'}"),
            ("enable-channel", "-u", "--overwrite", "--subbuf-size=1M", "--num-subbuf=4", "all"),
            ("enable-event", "-u", "-c", "all", "hypermon_cost:*"), ("start",)))
        if not ready:
            print("LTTng-UST is left out: its session cannot be started")
        yield ready
        said("destroy", "hypermon-cost")
    finally:
        running.terminate()
        running.wait(timeout=30)


def host(folder: Path, rounds: int, events: int) -> dict[str, Costs]:
    """Nanoseconds by way and item; the virtual port once for each number of edges."""
    costs: dict[str, Costs] = {}
    with tracing(folder) as traced:
        for edges in (1, 2):
            program = folder / f"cost{edges}"
            command = ["cc", "-std=c99", "-O2", "-Wall", "-Wextra", f"-DHM_EDGES={edges}", f"-I{NODE}", f"-I{HERE}",
                       HERE / "node_cost.c", "-o", program]
            if traced:
                try:
                    subprocess.run([*command, "-std=gnu99", "-DLTTNG", "-llttng-ust", "-ldl"], check=True,
                                   capture_output=True)
                except subprocess.CalledProcessError:
                    print("LTTng-UST is left out: its headers are missing; on Debian: apt-get install liblttng-ust-dev")
                    traced = False
            if not traced:
                subprocess.run(command, check=True)
            done = subprocess.run([program, str(rounds), str(events)], check=True, capture_output=True, text=True,
                                  env={**os.environ, "LTTNG_HOME": str(folder)})
            for way, item, ns in map(str.split, done.stdout.splitlines()):
                costs.setdefault(f"{way}{edges}" if way == "virtual" else way, {})[item] = float(ns)
    return costs


def row(name: str, costs: Costs, unit: str, digits: int = 0) -> None:
    cells = [f"{costs[item]:.{digits}f}" if item in costs else "-" for item in ITEMS]
    print(f"  {name:<44}" + "".join(f"{cell:>10}" for cell in cells) + f"  {unit}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="on this machine (200)")
    parser.add_argument("--events", type=int, default=2000, help="in a round (2000)")
    options = parser.parse_args()
    print(f"  {'':<44}{'nibble':>10}{'event':>10}{'+ 2 bytes':>10}{'word':>10}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, flags in (("one edge", ["-DHM_EDGES=1"]), ("two edges", ["-DHM_EDGES=2"])):
            for also, more in (("", []), (", interrupts not kept out", ["-DHM_INTERRUPTS=0"])):
                try:
                    row(f"RP2040, processor, {title}{also}", rp2040(
                        folder, ITEMS, "-DHM_TARGET=HM_TARGET_RP2040_SIO", *flags, *more), "clocks")
                except MissingError as missing:
                    print(f"  RP2040: {missing}")
        for also, more in (("", []), (", interrupts not kept out", ["-DHM_INTERRUPTS=0"])):
            try:
                costs: Costs = {}
                for items, kind in ((("nibble",), "NIBBLES"), (("event", "event2"), "EVENTS"), (("word",), "WORDS")):
                    costs |= rp2040(folder, items, "-DHM_TARGET=HM_TARGET_RP2040_PIO", f"-DHM_ITEMS=HM_ITEMS_{kind}",
                                    *more)
                row(f"RP2040, PIO{also}", costs, "clocks")
            except MissingError as missing:
                print(f"  RP2040: {missing}")
        for machine, style in (("Cortex-M4", "BSRR"), ("Cortex-M33", "BSRR"), ("RISC-V", "WHOLE")):
            for edges in (1, 2):
                try:
                    row(f"{machine}, {('one edge', 'two edges')[edges - 1]}", instructions(
                        machine, folder, f"-DHM_STYLE=HM_STYLE_{style}", f"-DHM_EDGES={edges}"), "instructions")
                except MissingError as missing:
                    print(f"  {machine}: {missing}")
        if shutil.which("cc") is None:
            print("  this machine: no cc here; on Debian: apt-get install gcc")
            return
        costs_here = host(folder, options.rounds, options.events)
        for way, title in (("memory", "this machine, a store to memory"),
                           ("stamped", "this machine, a store with a time stamp"),
                           ("virtual1", "this machine, virtual port, one edge"),
                           ("virtual2", "this machine, virtual port, two edges"),
                           ("lttng", "this machine, LTTng-UST, recording")):
            if way in costs_here:
                row(title, costs_here[way], "ns", 1)


if __name__ == "__main__":
    main()
