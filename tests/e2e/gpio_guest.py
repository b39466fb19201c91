"""Lines of a Linux GPIO chip, driven by the node library, its Python and ``hypermon emulate``: ``make guest OF=gpio``.

The chip is the kernel's own gpio-sim, in a guest. Debian's kernel is built without it, so it is compiled here from
Debian's source of that kernel, as a module. What the lines did is what the kernel's tracepoint ``gpio_value`` has
noted, at which times, and what gpio-sim's files said after each write; it is played to the virtual board.

The guest's processor is QEMU's with ``-icount shift=0``: each instruction takes a nanosecond of its time. So times
in the guest are instructions, the kernel's too, and the same whatever else this machine does.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypermon.host import open_run
from hypermon.host.cli import cli
from hypermon.sim.emulate.workload import Item, load_workload
from hypermon.sim.pins import data_of_event
from linux_guest import BUILD, GuestError, Steps, call, run_in_guest, unpack

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "node"))

from port_reader import Write, read_events, read_nibbles  # noqa: E402

__all__ = ["Costs", "main", "run"]

NODE = HERE.parents[1] / "node"
#: PyPI's package of libgpiod's Python binding has the library's source in it; Debian 12 has version 1.
LIBGPIOD = "gpiod==2.5.0"
_CHIP, _LINES = "/dev/gpiochip0", 32
_VALUES = "/sys/devices/platform/gpio-sim.0/gpiochip0"
_COMPILER = ("cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{NODE}", str(HERE / "gpio_node.c"))

Costs = dict[str, dict[str, float]]

#: What the programs say, a filler behind each.
SAID = [(0xF0 - i, bytes((17 * k + i) & 255 for k in range(i))) for i in range(15)]


# ------------------------------------------------------------------------------- what has to be built

def gpio_sim(say: Steps) -> list[Path]:
    """The modules, built for Debian's kernel."""
    def packages(release: str) -> list[str]:
        version = release.split(".", 2)
        return [f"linux-headers-{release}", f"linux-headers-{release.removesuffix('-amd64')}-common",
                f"linux-kbuild-{version[0]}.{version[1]}", f"linux-source-{version[0]}.{version[1]}"]

    root = unpack(say, packages)
    [headers] = [path for path in (root / "usr" / "src").glob("linux-headers-*") if not path.name.endswith("common")]
    release = headers.name.removeprefix("linux-headers-")
    folder = BUILD / f"gpio-sim-{release}"
    modules = [folder / "irq-sim.ko", folder / "gpio-sim.ko"]
    if all(module.exists() for module in modules):
        return modules
    say("gpio-sim, from Debian's source of that kernel")
    folder.mkdir(exist_ok=True)
    wanted = ("drivers/gpio/gpio-sim.c", "drivers/gpio/gpiolib.h", "kernel/irq/irq_sim.c")
    [packed] = (root / "usr" / "src").glob("linux-source-*.tar.xz")
    with tarfile.open(packed) as source:
        for member in source:
            if member.name.partition("/")[2] in wanted:
                file = source.extractfile(member)
                assert file
                (folder / Path(member.name).name).write_bytes(file.read())
    # A module may not call irq_to_desc().
    (folder / "irq-sim.c").write_text("#include <linux/irq.h>\n#include <linux/irqdesc.h>\n#include <linux/module.h>\n"
                                      "#define irq_to_desc(irq) irq_data_to_desc(irq_get_irq_data(irq))\n"
                                      '#include "irq_sim.c"\nMODULE_LICENSE("GPL");\n')
    (folder / "Kbuild").write_text("obj-m := gpio-sim.o irq-sim.o\n")
    common = headers.with_name(headers.name.removesuffix("-amd64") + "-common")
    (headers / "Makefile").write_text(f"include {common}/Makefile\n")  # it names the one that is not installed
    call("make", "-C", str(headers), f"M={folder}", "modules")
    return modules


def libgpiod(say: Steps) -> Path:
    """Folder of libgpiod 2: ``include/gpiod.h`` and ``libgpiod.a``."""
    folder = BUILD / LIBGPIOD.replace("==", "-")
    archive = folder / "libgpiod.a"
    if not archive.exists():
        say(f"libgpiod, from PyPI's {LIBGPIOD}")
        call(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps",
             "--no-binary=gpiod", "--dest", str(BUILD), LIBGPIOD)
        with tarfile.open(BUILD / f"{folder.name}.tar.gz") as source:
            source.extractall(BUILD, filter="data")
        files = sorted((folder / "lib").glob("*.c"))
        version = (folder / "libgpiod-version.txt").read_text().strip()
        call("cc", "-O2", "-D_GNU_SOURCE", f'-DGPIOD_API_VERSION_STR="{version}"', f"-I{folder / 'include'}", "-c",
             *map(str, files), cwd=folder)
        call("ar", "rcs", str(archive), *(str(folder / file.with_suffix(".o").name) for file in files))
    return folder


def _programs(say: Steps, out: Path) -> None:
    """gpiochip4, gpiochip8, libgpiod4, libgpiod8, and back4 and back8, which read back after each write."""
    library = libgpiod(say)
    for bits in (4, 8):
        chip, lib = (["-DHM_TARGET=HM_TARGET_" + name, f"-DHM_BITS={bits}"] for name in ("GPIOCHIP", "LIBGPIOD"))
        call(*_COMPILER, *chip, "-o", str(out / f"gpiochip{bits}"))
        call(*_COMPILER, *chip, f'-DREAD_BACK="{_VALUES}"', "-o", str(out / f"back{bits}"))
        call(*_COMPILER, *lib, f"-I{library / 'include'}", str(library / "libgpiod.a"),
             "-o", str(out / f"libgpiod{bits}"))


# ------------------------------------------------------------------------------------ in the guest

#: Python at lines from argument 1 on, as many as argument 2 says: the same events, each write read back; its costs.
_PYTHON = """
import sys, time
from hypermon.sim.pins import GpioPort

first, count = int(sys.argv[1]), int(sys.argv[2])
lines = list(range(first, first + count))

class Watched(GpioPort):
    def write(self, value):
        super().write(value)
        print(sum(int(open(f"VALUES/sim_gpio{line}/value").read()) << bit for bit, line in enumerate(lines)))

with Watched("CHIP", lines) as port:
    for i in range(15):
        port.event(0xF0 - i, bytes((17 * k + i) & 255 for k in range(i)))
        port.nibble(0)
open("/sys/kernel/tracing/events/gpio/gpio_value/enable", "w").write("0")
with GpioPort("CHIP", lines) as port:
    for name, what in (("nibble", lambda i: port.nibble(i)), ("event", lambda i: port.event(i & 255)),
                       ("event2", lambda i: port.event(17, i.to_bytes(2, "little"))), ("word", lambda i: port.word(i))):
        what(0)
        begin = time.monotonic_ns()
        for i in range(500):
            what(i)
        print(f"cost {name} {(time.monotonic_ns() - begin) / 500}")
""".replace("CHIP", _CHIP).replace("VALUES", _VALUES)


def _script(times: int) -> str:
    python, hypermon = (shlex.quote(str(Path(sys.executable).with_name(name))) for name in ("python", "hypermon"))
    tracing = "/sys/kernel/tracing"

    def traced(name: str, command: str) -> list[str]:
        enable = f"{tracing}/events/gpio/gpio_value/enable"
        return [f"echo > {tracing}/trace; echo 1 > {enable}", f"{command} || exit 1",
                f"echo 0 > {enable}; cat {tracing}/trace > /mnt/{name}.trace"]

    lines = [
        "export PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 HOME=/mnt TMPDIR=/mnt",
        "mount -t configfs none /sys/kernel/config && mount -t tracefs none /sys/kernel/tracing || exit 1",
        "mkdir /sys/kernel/config/gpio-node && cd /sys/kernel/config/gpio-node && mkdir bank || exit 1",
        f"echo {_LINES} > bank/num_lines && echo 1 > live || exit 1",
        'echo "guest: Linux $(uname -r), $(cat bank/chip_name) of $(cat dev_name)"',
        "cat /sys/class/gpio/gpiochip*/base > /mnt/base",
        # The counter, of nanoseconds here; the other clocks are printed in microseconds.
        f"echo x86-tsc > {tracing}/trace_clock; echo 16384 > {tracing}/buffer_size_kb"]
    for bits in (4, 8):
        lines += [f"/mnt/gpiochip{bits} {_CHIP} 0 cost {times} > /mnt/gpiochip{bits}.cost || exit 1",
                  f"/mnt/libgpiod{bits} {_CHIP} 0 cost {times} > /mnt/libgpiod{bits}.cost || exit 1"]
    for bits in (4, 8):
        for name in (f"back{bits}", f"libgpiod{bits}"):
            lines += traced(name, f"/mnt/{name} {_CHIP} 3 say > /mnt/{name}.said")
        lines += traced(f"python{bits}", f"{python} /mnt/node.py 7 {bits + 1} > /mnt/python{bits}.said")
        ports = [f"--lines {node}={','.join(map(str, range(first, first + bits + 1)))}"
                 for node, first in enumerate((2, 2 + bits + 1))]
        lines += traced(f"emulate{bits}", f"{hypermon} emulate /mnt/work.csv --gpio {_CHIP} --port-bits {bits} "
                        + " ".join(ports))
    return "\n".join(lines)


# ----------------------------------------------------------------------------- what the lines did

def _writes(out: Path, name: str, first: Sequence[int], bits: int) -> list[Write]:
    """The ports from these lines on, one a node, as the kernel's trace has them."""
    base = int((out / "base").read_text())
    values, writes = [0] * len(first), []
    for time, number, value in re.findall(r" (\d+): gpio_value: (\d+) set (\d)", (out / f"{name}.trace").read_text()):
        line = int(number) - base
        for node, begin in enumerate(first):
            if 0 <= line - begin <= bits and values[node] >> line - begin & 1 != int(value):
                values[node] ^= 1 << line - begin
                writes.append(Write(int(time), node, values[node]))
    if not writes:
        raise GuestError(f"{name}: the kernel has noted nothing")
    start = writes[0].time_ns - 1000
    return [write._replace(time_ns=write.time_ns - start) for write in writes]


def _same(name: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise GuestError(f"{name}: what the lines did is not what was sent")


def _check_said(out: Path, name: str, first: int, bits: int, read_back: bool) -> list[str]:
    """Events of every length: by the trace, and by what was read back after each write. What else was printed."""
    writes = _writes(out, name, [first], bits)
    _same(name, [event[1:] for event in read_events(read_nibbles(writes, 1, bits)[0], bits)], SAID)
    lines = (out / f"{name}.said").read_text().split("\n")
    if read_back:
        _same(name, [int(line) for line in lines if line.isdigit()],
              [value for event, payload in SAID for data in (*data_of_event(event, payload, bits), 0)
               for value in (data, data | 1 << bits)])
    return [line for line in lines if line.startswith("cost ")]


def _check_board(out: Path, items: Sequence[Item], bits: int) -> list[float]:
    """``hypermon emulate``, by way of the virtual board; how much later than the promptest event each was, in us."""
    name = f"emulate{bits}"
    stimulus, recorded = out / f"{name}.csv", out / name
    writes = _writes(out, name, [2, 2 + bits + 1], bits)
    stimulus.write_text("time_ns,node,port\n" + "".join(f"{w.time_ns},{w.node},{w.port}\n" for w in writes))
    cli.main(args=["sim", str(stimulus), "-o", str(recorded), "--config", "extended", "--mode", "event",
                   "--port-bits", str(bits)], standalone_mode=False)
    table = open_run(recorded).events()
    got = sorted(zip(*(table[column].to_pylist() for column in ("node", "time_ps", "event", "payload", "aborted")),
                     strict=True))
    wanted = sorted(items, key=lambda item: (item.node, item.time_ps))
    _same(name, [(node, *row) for node, _, *row in got], [(i.node, i.data[0], i.data[1:], False) for i in wanted])
    lag = [row[1] - item.time_ps for row, item in zip(got, wanted, strict=True)]
    return sorted((late - min(lag)) / 1e6 for late in lag)


def run(events: int, times: int, say: Steps) -> Costs:
    """The whole thing; what each way's calls cost, in instructions.

    Raises
    ------
    GuestError
        if anything is not as it should be.
    """
    modules = gpio_sim(say)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        _programs(say, out)
        (out / "node.py").write_text(_PYTHON)
        work = out / "work.csv"
        work.write_text("time_ps,node,event,payload_hex\n" + "".join(
            f"{4_000_000_000 * at},{at * 7 % 2},{at % 256},{bytes(range(at % 15)).hex()}\n"
            for at in range(1, events + 1)))
        run_in_guest(_script(times), out, say, modules=("configfs", "gpio-sim"), built=modules,
                     devices=("-icount", "shift=0"))
        costs: Costs = {}
        for bits in (4, 8):
            _check_said(out, f"back{bits}", 3, bits, True)
            _check_said(out, f"libgpiod{bits}", 3, bits, False)
            python = _check_said(out, f"python{bits}", 7, bits, True)
            printed = {f"python{bits}": [line.removeprefix("cost ") for line in python]}
            for way in (f"gpiochip{bits}", f"libgpiod{bits}"):
                printed[way] = (out / f"{way}.cost").read_text().splitlines()
            for way, lines in printed.items():
                costs[way] = {name: float(ns) for name, ns in map(str.split, lines)}
            say(f"{bits} bits: C (the kernel's interface, libgpiod) and Python, {len(SAID)} events each, as sent")
            late = _check_board(out, load_workload(work).items, bits)
            say(f"{bits} bits: hypermon emulate, {events} events of two nodes through the virtual board, as sent; "
                f"nine in ten within {late[9 * len(late) // 10]:.0f} us of their times, all within {late[-1]:.0f}")
    return costs


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make guest OF=gpio", description=__doc__)
    parser.add_argument("--events", type=int, default=200, help="that hypermon emulate plays (200)")
    parser.add_argument("--times", type=int, default=2000, help="that each call is measured (2000)")
    arguments = parser.parse_args()
    try:
        costs = run(arguments.events, arguments.times, Steps())
    except (GuestError, subprocess.CalledProcessError) as failure:
        sys.exit(f"make guest OF=gpio: {failure}")
    items = ("nibble", "event", "event2", "word")
    print(f"\n  {'instructions, kernel included':<44}" + "".join(f"{item:>10}" for item in items))
    for way, row in costs.items():
        print(f"  {way:<44}" + "".join(f"{row[item]:>10.0f}" for item in items))
    print(f"  a system call (clock_getres) {costs['gpiochip4']['system-call']:.0f}; "
          f"a loop of 2000 instructions {costs['gpiochip4']['2000-instructions']:.0f}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
