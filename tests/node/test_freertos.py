"""FreeRTOS itself, traced through the virtual board; against what the program has measured.

It runs on an emulated RP2040 and on QEMU's board with a Cortex-M3.
"""

import re
import statistics
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from emulators.freertos_kernel import kernel
from emulators.mps2 import build
from emulators.mps2 import play as play_mps2
from emulators.rp2040 import Played, play
from hypermon.host import cli
from hypermon.host.errors import HypermonError
from hypermon.host.run import open_run
from hypermon.sim.emulate.firmware import link
from port_reader import Write

from tests.programs import MissingError, working

HERE = Path(__file__).parent / "freertos"
DICTIONARY = Path(__file__).parents[2] / "node" / "freertos.toml"
PAGE = Path(__file__).parents[2] / "docs" / "nodes.md"
TICKS = 20
#: What the program says itself, at its end.
OWN = """
[ran]
id = 1
fields = { task = "u8", us = "u32" }
[held_us]
id = 2
fields = { us = "u32" }
[worst_us]
id = 3
fields = { us = "u32" }
[latest]
id = 4
fields = { clocks = "u32" }
[soonest]
id = 5
fields = { clocks = "u32" }
[ticks]
id = 6
fields = { count = "u32" }
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """``played(flags..., functions=())``: the program, run to its end."""
    folder = tmp_path_factory.mktemp("kernel")

    def run(*flags: str, functions: tuple[str, ...] = ()) -> Played:
        try:
            working("arm-none-eabi-gcc")
            at = kernel(folder)
            port = at / "portable" / "GCC" / "ARM_CM0"
            sources = [HERE / "main.c", *(at / name for name in ("tasks.c", "queue.c", "list.c")), port / "port.c",
                       port / "portasm.c", at / "portable" / "MemMang" / "heap_4.c"]
            # Warnings are the kernel's.
            elf = link(sources, b"", f"-I{at / 'include'}", f"-I{port}", f"-I{HERE}", f"-DTICKS={TICKS}", "-w", *flags)
            return play(elf, folder, limit=125_000 * (TICKS + 5), functions=functions)
        except (MissingError, HypermonError) as error:
            if "found fault" in str(error):
                raise
            pytest.skip(str(error))

    return run


def on_mps2(folder: Path) -> list[tuple[int, int]]:
    """The same program on QEMU's Cortex-M3: (time in ns, port) of each write."""
    try:
        working("arm-none-eabi-gcc")
        at = kernel(folder)
        port = at / "portable" / "GCC" / "ARM_CM3"
        sources = [HERE / "main.c", *(at / name for name in ("tasks.c", "queue.c", "list.c")), port / "port.c",
                   at / "portable" / "MemMang" / "heap_4.c"]
        build(sources, folder / "program.elf", f"-I{at / 'include'}", f"-I{port}", f"-I{HERE}", f"-DTICKS={TICKS}",
              "-DMPS2", "-w")
        return play_mps2(folder / "program.elf", folder)
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["rp2040", "mps2"])
def machine(request):
    return request.param


@pytest.fixture(scope="module")
def run(machine, played, tmp_path_factory):
    """The run of the virtual board that those pins have made."""
    folder = tmp_path_factory.mktemp("freertos")
    rows = on_mps2(folder) if machine == "mps2" else [(clock * 8, value >> 2 & 31) for clock, value in played().pins]
    changed = [Write(time, 0, value) for k, (time, value) in enumerate(rows) if value != (rows[k - 1][1] if k else 0)]
    (folder / "pins.csv").write_text("time_ns,node,port\n" + "".join(f"{t},{n},{v}\n" for t, n, v in changed))
    (folder / "own.toml").write_text(DICTIONARY.read_text() + OWN)
    assert cli._run(["sim", str(folder / "pins.csv"), "-o", str(folder / "run"), "--config", "extended", "--mode",
                     "event", "--edge", "both", "--nodes", "4"]) == 0
    assert cli._run(["decode", str(folder / "run"), "--dictionary", str(folder / "own.toml")]) == 0
    found = open_run(folder / "run")
    assert (found.stats()["lost"], found.stats()["aborted"]) == (0, 0)
    return found


def asked(run, question):
    return run.sql(question).fetchall()


def tasks(run):
    return dict(asked(run, "select task, task_name from events where name = 'task' order by task"))


def test_tasks_and_queues_have_names(run):
    assert tasks(run) == {1: "low", 2: "middle", 3: "high", 4: "reporter", 5: "IDLE"}
    assert asked(run, "select queue, queue_kind from events where name = 'queue' order by queue") == \
        [(1, "mutex"), (2, "queue")]


def test_the_processors_time_by_task(run):
    """The kernel counts microseconds between two switches: each may be off by one, and by the hooks' own time."""
    begin, end = asked(run, "select min(begin_ps), max(begin_ps) from states where name = 'running'")[0]
    traced = dict(asked(run, f"select key::int, sum(coalesce(end_ps, {end}) - begin_ps) / 1e6 from states "
                             "where name = 'running' group by key"))
    said = dict(asked(run, "select task, us from events where name = 'ran'"))
    switches = dict(asked(run, "select task, count(*) from events where name = 'switched_in' group by task"))
    assert set(said) == set(tasks(run))
    del said[4]     # the first that ran: the kernel counts the time before its start as well
    for task, us in said.items():
        assert abs(traced.get(task, 0) - us) <= 3.5 * switches.get(task, 0) + 1, (task, traced, said)
    assert traced[1] > 0.8 * (end - begin) / 1e6, "the low task takes what is left"


def test_one_task_runs_at_a_time(run):
    rows = asked(run, "select begin_ps, end_ps from states where name = 'running' order by begin_ps")
    assert len(rows) > 50
    assert all(end <= begin for (_, end), (begin, _) in pairwise(rows))


def test_how_long_the_mutex_was_held(run):
    """The program's own sum is of the time between its two calls; the events are inside of them."""
    [(count, traced)] = asked(run, "select count(*), sum(end_ps - begin_ps) / 1e6 from states where name = 'held'")
    [(said,)] = asked(run, "select us from events where name = 'held_us'")
    assert count > 20
    assert said <= traced <= said + 20 * count


def test_the_inversion_and_its_cure(run):
    """The high task waits for a mutex that the low one has; the low one inherits its priority until it unlocks."""
    inherited = asked(run, "select time_ps, priority from events where name = 'priority' and task = 1 order by time_ps")
    assert [priority for _, priority in inherited[:4]] == [3, 1, 3, 1]
    assert len(inherited) > 6
    # From the block to the lock that follows; the program's own figure is from before the one to after the other.
    waits = asked(run, """
        select (l.time_ps - b.time_ps) / 1e6 from (select * from events where name = 'block' and queue = 1) b
        asof join (select * from events where name = 'lock' and queue = 1) l on l.time_ps > b.time_ps""")
    [(worst,)] = asked(run, "select us from events where name = 'worst_us'")
    assert worst - 25 <= max(wait for wait, in waits) <= worst
    # While it waited, the middle task never ran for longer than until the high one had blocked.
    assert max(wait for wait, in waits) < 400


def ticks(run) -> int:
    """As the program has counted them; the emulated RP2040's timer begins with one."""
    [(count,)] = asked(run, "select count from events where name = 'ticks'")
    assert count in (TICKS, TICKS + 1)
    return count


def page_query(title: str) -> str:
    """The SQL of the command that follows this title in the section of the page."""
    section = PAGE.read_text().partition("## FreeRTOS")[2].partition("\n## ")[0]
    found = re.search(rf"\*\*{title}.*?hypermon query RUN \"(.*?)\"\n", section, re.DOTALL)
    assert found is not None, title
    return found[1]


def test_response_times(run):
    """From ready to running, by task. The highest one never waits for longer than an interrupt and a switch."""
    rows = {name: figures for name, *figures in asked(run, page_query("Response time"))}
    assert set(rows) >= {"low", "middle", "high"}
    count, median, worst = rows["high"]
    assert count > 5
    assert median < 10
    assert median <= worst
    # The middle task is made ready by the tick, and runs at once unless the high one or an inherited priority does.
    assert rows["high"][2] < rows["low"][2]


def test_interrupt_latency(machine, run):
    """Of the tick, beyond its shortest one; the program has read its timer at the beginning of each handler."""
    [(interrupt, count, median, worst)] = asked(run, page_query("Interrupt latency"))
    assert (interrupt, count) == ("0", ticks(run))
    [(latest,)] = asked(run, "select clocks from events where name = 'latest'")
    [(soonest,)] = asked(run, "select clocks from events where name = 'soonest'")
    clock_us = {"rp2040": 0.008, "mps2": 0.04}[machine]
    assert (latest - soonest) * clock_us > 8, "a critical section of the program makes a tick wait"
    assert worst == pytest.approx((latest - soonest) * clock_us, abs=0.05)
    assert 0 <= median <= worst


def test_ticks_are_interrupts(run):
    rows = asked(run, "select begin_ps, end_ps - begin_ps from states where name = 'interrupt' order by begin_ps")
    gaps = [b - a for (a, _), (b, _) in pairwise(rows)]
    assert len(rows) == ticks(run)
    assert statistics.median(gaps) == pytest.approx(10**9, rel=1e-3)


def test_what_an_event_costs(played):
    """In clocks of a Cortex-M0+: a semaphore that is taken at once, with its event and without."""
    name = "xQueueSemaphoreTake"
    with_event = statistics.median(played(functions=(name,)).calls[name])
    without = statistics.median(played("-DPLAIN", functions=(name,)).calls[name])
    assert (with_event, without) == (pytest.approx(208, abs=20), pytest.approx(103, abs=10))


def test_what_a_task_switch_costs(played):
    """The kernel's choice of the next task, with the two events of a switch and without, on a Cortex-M0+."""
    name = "vTaskSwitchContext"
    traced, plain = played(functions=(name,)), played("-DPLAIN", functions=(name,))
    figures = [statistics.median(of) for run in (traced, plain) for of in (run.calls[name], run.instructions[name])]
    clocks, instructions = figures[0] - figures[2], figures[1] - figures[3]
    said = re.search(r"(\d+) instructions and (\d+) clocks", PAGE.read_text())
    assert (instructions, clocks) == (pytest.approx(int(said[1]), abs=8), pytest.approx(int(said[2]), abs=10))


def test_the_hooks_fit_a_kernel_of_two_cores(tmp_path):
    """Its sources are compiled with a port per core; they have not run on two cores."""
    try:
        at = kernel(tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    for name in ("tasks.c", "queue.c"):
        out = tmp_path / f"{name}.o"
        # Warnings are the kernel's.
        subprocess.run(["gcc", "-w", "-O1", "-c", at / name, "-o", out, f"-I{HERE / 'smp'}", f"-I{at / 'include'}",
                        f"-I{DICTIONARY.parent}"], check=True)
        symbols = subprocess.run(["nm", out], check=True, capture_output=True, text=True).stdout
        assert re.search(r"U ports$", symbols, re.MULTILINE)
        assert re.search(r"U smp_core$", symbols, re.MULTILINE)
        assert "portGET_CORE_ID" not in symbols
