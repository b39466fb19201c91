"""The component for ESP-IDF, with stubs of the declarations that it takes from there, on two cores.

ESP-IDF is in no package registry, so the component is not built with it here. The stubs have the names and signatures
of ESP-IDF 6, and the program calls the trace macros where its kernel does.
"""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from cross import MACHINES, NODE, compile_for
from hypermon.host import cli
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.run import Run, open_run

from tests.patience import patience
from tests.programs import MissingError

COMPONENT = NODE / "esp_idf" / "hypermon_trace"
STUBS = {
    "sdkconfig.h": """
#define CONFIG_FREERTOS_NUMBER_OF_CORES 2
#define CONFIG_ESP_TRACE_LIB_NAME "ext"
""",
    "freertos/FreeRTOS.h": """
#ifndef STUB_FREERTOS_H
#define STUB_FREERTOS_H
#define configUSE_TRACE_FACILITY 1
#include "esp_trace_freertos_impl.h"
typedef int BaseType_t;
BaseType_t xPortGetCoreID(void);
unsigned stub_mask(void);
void stub_unmask(unsigned before);
#define portGET_CORE_ID() xPortGetCoreID()
#define portSET_INTERRUPT_MASK_FROM_ISR() stub_mask()
#define portCLEAR_INTERRUPT_MASK_FROM_ISR(before) stub_unmask(before)
#endif
""",
    "esp_trace_port_encoder.h": """
typedef int esp_err_t;
#define ESP_OK 0
typedef struct esp_trace_encoder esp_trace_encoder_t;
typedef struct { esp_err_t (*init)(esp_trace_encoder_t *enc, const void *enc_cfg); } esp_trace_encoder_vtable_t;
""",
    "esp_rom_gpio.h": """
#include <stdbool.h>
#include <stdint.h>
void esp_rom_gpio_pad_select_gpio(uint32_t iopad_num);
void esp_rom_gpio_connect_out_signal(uint32_t gpio_num, uint32_t signal_idx, bool out_inv, bool oen_inv);
""",
    "soc/gpio_sig_map.h": "#define SIG_GPIO_OUT_IDX 256\n",
    "soc/gpio_reg.h": "".join(f"#define GPIO_{name}_REG (0x60004000 + {offset:#x})\n" for name, offset in (
        ("OUT_W1TS", 0x8), ("OUT_W1TC", 0xc), ("OUT1_W1TS", 0x14), ("OUT1_W1TC", 0x18), ("ENABLE_W1TS", 0x24),
        ("ENABLE1_W1TS", 0x30))),
    "esp_trace_registry.h": """
#define ESP_TRACE_REGISTER_ENCODER(name, table) \\
    const char *const stub_encoder_name = name; const esp_trace_encoder_vtable_t *const stub_encoder = table
""",
}
VIRTUAL = '#include "hypermon.h"\n#define HM_ESP_IDF_OPEN(port, core) hm_virtual_open(port, 10000)\n'
PAGE = Path(__file__).parents[2] / "docs" / "nodes.md"
#: The header on the page, for an ESP32-S3.
[PINS] = [block for block in re.findall(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL) if "HM_ESP_IDF_OPEN" in block]
#: What ESP-IDF's kernel would do.
PROGRAM = r"""
#define _POSIX_C_SOURCE 200809L
#include "hypermon_trace.c"
struct task { unsigned uxTCBNumber, uxPriority; const char *pcTaskName; };
struct queue { unsigned uxQueueNumber; unsigned char ucQueueType; };
static struct task tasks[3] = { { 1, 5, "main" }, { 2, 24, "ipc1" }, { 3, 1, "worker" } };
static struct task *pxCurrentTCBs[2] = { &tasks[0], &tasks[1] };
static struct queue mutex = { 0, 1 }, semaphore = { 0, 3 };
static int core, masked;
BaseType_t xPortGetCoreID(void) { return core; }
unsigned stub_mask(void) { return (unsigned)masked++; }
void stub_unmask(unsigned before) { masked = (int)before; }
int main(int argc, char **argv)
{
    hm_port *ports[2] = { &hm_esp_idf_cores[0].port, &hm_esp_idf_cores[1].port };
    const uint64_t start = hm_virtual_now();
    int k;
    if (stub_encoder->init(NULL, NULL) != ESP_OK || stub_encoder_name[0] != 'e')
        return 1;
    for (k = 0; k < 3; k++)
        traceTASK_CREATE(&tasks[k]);
    traceQUEUE_CREATE(&mutex);
    traceQUEUE_CREATE(&semaphore);
    traceTASK_SWITCHED_IN();
    core = 1;
    traceTASK_SWITCHED_IN();
    core = 0;
    traceQUEUE_SEMAPHORE_RECEIVE(&mutex);
    traceISR_ENTER(9);                          /* an interrupt within an interrupt */
    traceISR_ENTER(12);
    traceQUEUE_GIVE_FROM_ISR(&semaphore);
    traceISR_EXIT();
    traceISR_EXIT();
    traceQUEUE_SEND(&mutex);
    traceISR_ENTER(9);
    traceISR_EXIT_TO_SCHEDULER();
    traceTASK_SWITCHED_OUT();                   /* the worker runs on core 0, then on core 1 */
    pxCurrentTCBs[0] = &tasks[2];
    traceTASK_SWITCHED_IN();
    traceTASK_SWITCHED_OUT();
    core = 1;
    traceISR_ENTER(4);                          /* its end is not reported */
    traceTASK_SWITCHED_OUT();
    pxCurrentTCBs[1] = &tasks[2];
    traceTASK_SWITCHED_IN();
    traceTASK_DELAY();
    traceTASK_SWITCHED_OUT();
    if (masked != 0)
        return 2;
    return hm_virtual_save(fopen(argv[argc - 1], "w"), ports, 2, start);
}
"""


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    for name, text in STUBS.items():
        path = tmp_path / "stubs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "stubs"


@pytest.fixture
def run(tools, stubs: Path, compile_c) -> Run:
    (stubs / "hypermon_port.h").write_text(VIRTUAL)
    program = compile_c(PROGRAM, f"-I{stubs}", f"-I{COMPONENT}", f"-I{COMPONENT / 'include'}", "-DHM_EDGES=1",
                        language="c11")
    subprocess.run([program, stubs / "saved.csv"], check=True, timeout=patience(20))
    made = stubs / "run"
    assert cli._run(["sim", str(stubs / "saved.csv"), "-o", str(made), "--config", "extended", "--mode", "event",
                     "--nodes", "4"]) == 0
    assert cli._run(["decode", str(made), "--dictionary", str(NODE / "freertos.toml")]) == 0
    return open_run(made)


def test_each_core_is_a_node(run: Run) -> None:
    names = {node: [name for name, in run.sql(f"select name from events where node = {node} order by time_ps")
                    .fetchall()] for node in (0, 1)}
    assert names[0] == ["task", "task", "task", "queue", "queue", "switched_in", "lock", "interrupt_enter",
                        "interrupt_enter", "send", "interrupt_exit", "interrupt_exit", "unlock", "interrupt_enter",
                        "interrupt_exit", "switched_out", "switched_in", "switched_out"]
    assert names[1] == ["switched_in", "interrupt_enter", "interrupt_exit", "switched_out", "switched_in", "delay",
                        "switched_out"]
    assert run.sql("select task, task_name from events where name = 'task' order by task").fetchall() == [
        (1, "main"), (2, "ipc1"), (3, "worker")]


def test_states_are_of_a_core(run: Run) -> None:
    def ran(name: str) -> list[tuple[int, str]]:
        return run.sql(f"select node, key from states where name = '{name}' and end_ps is not null "
                       "order by node, begin_ps").fetchall()

    assert ran("running") == [(0, "1"), (0, "3"), (1, "2"), (1, "3")]
    assert ran("held") == [(0, "1")]
    assert ran("interrupt") == [(0, "9"), (0, "12"), (0, "9"), (1, "4")]
    inner, outer = (run.sql(f"select begin_ps, end_ps from states where name = 'interrupt' and key = '{key}' "
                            "order by begin_ps").fetchall()[0] for key in ("12", "9"))
    assert outer[0] < inner[0] < inner[1] < outer[1]


@pytest.mark.parametrize("machine", ["RISC-V", "Xtensa"])
def test_compiled_for_the_processors(stubs: Path, machine: str) -> None:
    (stubs / "hypermon_port.h").write_text(PINS)
    try:
        compile_for(MACHINES[machine], COMPONENT / "hypermon_trace.c", stubs / "trace.o", f"-I{stubs}",
                    f"-I{COMPONENT / 'include'}")
    except MissingError as error:
        pytest.skip(str(error))


def test_the_header_is_one_of_cpp(stubs: Path, compile_c) -> None:
    """Every source that includes FreeRTOS.h includes it, in C++ too."""
    source = stubs / "user.cpp"
    source.write_text('#include "freertos/FreeRTOS.h"\nvoid handler() { traceISR_EXIT_TO_SCHEDULER(); }\n')
    subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", stubs / "user.o", f"-I{stubs}",
                    f"-I{COMPONENT / 'include'}", f"-I{NODE}"], check=True)
    symbols = subprocess.run(["nm", stubs / "user.o"], check=True, capture_output=True, text=True).stdout
    assert re.search(r"U hm_esp_idf_exit$", symbols, re.MULTILINE)
    assert "hm_event" not in symbols


def test_the_dictionary_has_the_ids_of_the_header() -> None:
    [listed] = re.findall(r"enum hm_freertos_event \{(.*?)\};", (NODE / "hypermon" / "freertos.h").read_text(),
                          re.DOTALL)
    kinds = load_dictionary(NODE / "freertos.toml").by_name
    assert sorted(kind.id for kind in kinds.values()) == [0xc0 + k for k in range(listed.count("HM_FREERTOS_") - 1)]


def test_the_manifest() -> None:
    """Its version, and that the files are there which it and the CMakeLists name."""
    project = tomllib.loads((NODE.parent / "pyproject.toml").read_text())["project"]
    manifest = yaml.safe_load((COMPONENT / "idf_component.yml").read_text())
    assert manifest["version"] == project["version"]
    assert manifest["license"] == project["license"]
    lowest = manifest["dependencies"]["idf"].removeprefix(">=")
    assert f"ESP-IDF {lowest} or later" in PAGE.read_text()
    lists = (COMPONENT / "CMakeLists.txt").read_text()
    for name in re.findall(r"(?:SRCS|LDFRAGMENTS) (\S+)", lists):
        assert (COMPONENT / name).is_file(), name
    folders = {name for names in re.findall(r"INCLUDE_DIRS ([\w./ ]+?)(?:\n|\))", lists) for name in names.split()}
    assert {"include", "../.."} <= folders
    assert (COMPONENT / "../.." / "hypermon.h").is_file()
    archive = re.search(r"archive: lib(\w+)\.a", (COMPONENT / "linker.lf").read_text())[1]
    assert archive == COMPONENT.name
