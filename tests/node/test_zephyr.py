"""The tracing backend for Zephyr, with stubs of the declarations that it takes from the kernel.

Zephyr itself is in no package registry, so the backend is not compiled with it here. The stubs have the signatures of
its `subsys/tracing/user/tracing_user.h`.
"""

import re
import subprocess
from pathlib import Path

import pytest
from cross import MACHINES, NODE, compile_for
from hypermon.host import cli
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.run import open_run

from tests.patience import patience
from tests.programs import MissingError

BACKEND = NODE / "zephyr" / "tracing_hypermon.c"
KERNEL_H = r"""
#include <stddef.h>
#include <stdint.h>
struct k_mutex { int count; };
struct k_thread { struct { signed char prio; } base; const char *name; long long aligned; };
typedef struct k_thread *k_tid_t;
typedef struct { long long ticks; } k_timeout_t;
struct init_entry;
k_tid_t k_sched_current_thread_query(void);
const char *k_thread_name_get(k_tid_t thread);
void sys_trace_thread_create_user(struct k_thread *thread);
void sys_trace_thread_abort_user(struct k_thread *thread);
void sys_trace_thread_suspend_user(struct k_thread *thread);
void sys_trace_thread_resume_user(struct k_thread *thread);
void sys_trace_thread_name_set_user(struct k_thread *thread);
void sys_trace_thread_switched_in_user(void);
void sys_trace_thread_switched_out_user(void);
void sys_trace_thread_priority_set_user(struct k_thread *thread, int prio);
void sys_trace_thread_sched_ready_user(struct k_thread *thread);
void sys_trace_thread_pend_user(struct k_thread *thread);
void sys_trace_isr_enter_user(void);
void sys_trace_isr_exit_user(void);
void sys_trace_k_mutex_lock_exit_user(struct k_mutex *mutex, k_timeout_t timeout, int ret);
void sys_trace_k_mutex_unlock_enter_user(struct k_mutex *mutex);
"""
INIT_H = "#define SYS_INIT(function, level, priority) int (*const hm_init_##level##_##priority)(void) = function\n"
PORTS = {"virtual": '#include "hypermon.h"\n#define HM_ZEPHYR_OPEN(port) hm_virtual_open(port, 10000)\n',
         "pico": '#define HM_TARGET HM_TARGET_RP2040_SIO\n#include "hypermon.h"\n'
                 "#define HM_ZEPHYR_OPEN(port) hm_rp2040_open(port)\n"}
#: What a kernel would do: it calls the hooks.
PROGRAM = r"""
#define _POSIX_C_SOURCE 200809L
#include "tracing_hypermon.c"
static struct k_thread threads[2] = { { { 5 }, "main", 0 }, { { -2 }, "driver with a long name", 0 } };
static struct k_mutex mutex;
static struct k_thread *now = &threads[0];
k_tid_t k_sched_current_thread_query(void) { return now; }
const char *k_thread_name_get(k_tid_t thread) { return thread->name; }
int main(int argc, char **argv)
{
    hm_port *ports = &hm_zephyr_port;
    const uint64_t start = hm_virtual_now();
    const k_timeout_t forever = { -1 };
    sys_trace_thread_switched_in_user();        /* before the port is open */
    if (hm_init_PRE_KERNEL_1_0() != 0)
        return 1;
    sys_trace_thread_create_user(&threads[0]);
    sys_trace_thread_name_set_user(&threads[1]);
    sys_trace_thread_switched_in_user();
    sys_trace_k_mutex_lock_exit_user(&mutex, forever, 0);
    sys_trace_k_mutex_lock_exit_user(&mutex, forever, -11);
    sys_trace_isr_enter_user();
    sys_trace_thread_sched_ready_user(&threads[1]);
    sys_trace_isr_exit_user();
    sys_trace_k_mutex_unlock_enter_user(&mutex);
    sys_trace_thread_switched_out_user();
    now = &threads[1];
    sys_trace_thread_switched_in_user();
    sys_trace_thread_priority_set_user(now, -3);
    sys_trace_thread_pend_user(now);
    sys_trace_thread_switched_out_user();
    return hm_virtual_save(fopen(argv[argc - 1], "w"), &ports, 1, start);
}
"""


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / "kernel.h").write_text(KERNEL_H)
    (tmp_path / "zephyr" / "init.h").write_text(INIT_H)
    return tmp_path


def test_hooks_are_events(tools, stubs: Path, compile_c) -> None:
    (stubs / "hypermon_port.h").write_text(PORTS["virtual"])
    program = compile_c(PROGRAM, f"-I{stubs}", f"-I{BACKEND.parent}", "-DHM_EDGES=1", language="c11")
    subprocess.run([program, stubs / "saved.csv"], check=True, timeout=patience(20))
    run = stubs / "run"
    assert cli._run(["sim", str(stubs / "saved.csv"), "-o", str(run), "--config", "extended", "--mode", "event",
                     "--nodes", "4"]) == 0
    assert cli._run(["decode", str(run), "--dictionary", str(NODE / "zephyr.toml")]) == 0
    ask = open_run(run).sql
    assert [name for name, in ask("select name from events order by time_ps").fetchall()] == [
        "thread", "thread", "switched_in", "lock", "interrupt_enter", "ready", "interrupt_exit", "unlock",
        "switched_out", "switched_in", "priority", "pend", "switched_out"]
    threads = ask("select thread, priority, thread_name from events where name = 'thread' order by time_ps").fetchall()
    assert [row[1:] for row in threads] == [(5, "main"), (-2, "driver with")]
    running = ask("select key from states where name = 'running' order by begin_ps").fetchall()
    assert running == [(str(thread),) for thread, *_ in threads]
    assert ask("select priority from events where name = 'priority'").fetchall() == [(-3,)]
    assert len(ask("select * from states where name in ('held', 'interrupt')").fetchall()) == 2


@pytest.mark.parametrize("machine", ["Cortex-M0+", "Cortex-M33"])
def test_compiled_for_a_microcontroller(stubs: Path, machine: str) -> None:
    (stubs / "hypermon_port.h").write_text(PORTS["pico"])
    try:
        compile_for(MACHINES[machine], BACKEND, stubs / "backend.o", f"-I{stubs}", "-DCONFIG_CPU_CORTEX_M")
    except MissingError as error:
        pytest.skip(str(error))


def test_the_dictionary_has_the_ids_of_the_backend() -> None:
    [listed] = re.findall(r"enum hm_zephyr_event \{(.*?)\};", BACKEND.read_text(), re.DOTALL)
    kinds = load_dictionary(NODE / "zephyr.toml").by_name
    assert sorted(kind.id for kind in kinds.values()) == [0xa0 + k for k in range(listed.count("HM_ZEPHYR_") - 1)]
