"""Why a statement of a page is not run, and what is put in the place of names that stand for something of a user's.

Each entry must be used: one that fits nothing fails the test.
"""

from pathlib import Path

__all__ = ["CTRL_C", "FILES", "INSTEAD", "NOT_RUN", "NOT_RUN_PYTHON", "PROGRAMS", "SETUP", "TERMINAL"]

_BOARD = "it needs a board"
_INSTALLS = "it changes the environment of the tests; .ci/dist-check installs"
_MINUTES = "minutes"
_AWAY = "it needs another machine"

#: Page (or any), regular expression of a statement's beginning, reason.
NOT_RUN: tuple[tuple[str, str, str], ...] = (
    ("", r"(\.venv/bin/)?pip install", _INSTALLS),
    ("", r"ssh -L", _AWAY),
    ("README.md", r"make test ", "it is the tests themselves"),
    ("CONTRIBUTING.md", r"make (setup|test|lint)", "it is the set-up of the tests, the tests themselves, or minutes"),
    ("docs/attach.md", r"hypermon emulate demo/run --gpio", _BOARD),
    ("docs/attach.md", r"hypermon build", _MINUTES),
    ("docs/attach.md", r"hypermon flash", _BOARD),
    ("docs/boards/README.md", r"hypermon build", _MINUTES),
    ("docs/boards/README.md", r"hypermon (flash|wirecheck)", _BOARD),
    ("docs/cocotb.md", r"make example", "minutes; tests/sim/bench/test_examples.py runs the examples"),
    ("docs/dev-board.md", r"hypermon build", _MINUTES),
    ("docs/dev-board.md", r"hypermon flash", _BOARD),
    ("docs/dev-board.md", r"hypermon wirecheck",
     "it needs nodes that call hm_wire_check(); tests/host/diagnose runs it"),
    ("docs/develop/release.md", r"make dist", _MINUTES),
    ("docs/first-light.md", r"hypermon build", _MINUTES),
    ("docs/first-picture.md", r"hypermon build", _MINUTES),
    ("docs/first-picture.md", r"hypermon flash", _BOARD),
    ("docs/first-picture.md", r"mpremote", "it needs two Picos"),
    ("docs/first-light.md", r"hypermon flash", _BOARD),
    ("docs/first-light.md", r"make bitstream-check", "minutes of place and route; tests/bitstream runs it"),
    ("docs/front-ends.md", r"hypermon build", _MINUTES),
    ("docs/front-ends.md", r"hypermon (flash|info|record)", _BOARD),
    ("docs/front-ends.md", r"hypermon (sim uart\.csv|export RUN)",
     "the Python above it writes the file; tests/sim/played/fronts/test_front_ends_played.py plays such nodes"),
    ("docs/links.md", r"hypermon (relay|record -b tcp:)", "two machines; tests/host/link runs a relay"),
    ("docs/machines.md", r"hypermon machine run (asciq|qsnet)", _MINUTES),
    ("docs/nodes.md", r"cmake .*pico", "it needs the Pico SDK; tests/node compiles the example with a part of it"),
    ("docs/nodes.md", r"cmake .*log|\.build/log/sensor|hypermon (sim|decode) sensor",
     "it needs CMake; tests/node/test_cmake_examples.py runs these commands"),
    ("docs/nodes.md", r"cmake .*freertos|\.build/freertos/tasks|hypermon sim tasks",
     "it needs FreeRTOS-Kernel; tests/node/test_cmake_examples.py builds and plays the example with it"),
    ("docs/nodes.md", r"hypermon (dict app|decode RUN --dictionary app|tail|export|query RUN .from logs)",
     "it needs a program of a user's; tests/node/test_log.py runs these commands with one"),
    ("docs/nodes.md", r"hypermon sim (display\.sr|rtl\.vcd)",
     "it needs a user's capture; tests/sim/stimulus has such files"),
    ("docs/recording.md", r"hypermon record .* --(seconds 3600|last-minutes)", "it records for an hour or more"),
    ("docs/several-boards.md", r"dask |hypermon analyse RUN rate --dask",
     "tests/host/analysis/test_by_board.py has a cluster"),
    ("docs/several-boards.md", r"hypermon build", _MINUTES),
    ("docs/several-boards.md", r"hypermon flash", _BOARD),
    ("docs/several-boards.md", r"hypermon merge A B -o BOTH", "it needs real boards: their time is compared with UTC"),
    ("docs/performance.md", r"python tests/bench/", _MINUTES),
    ("docs/pcie-boards.md", r"vivado ", "it needs Vivado"),
    ("docs/several-boards.md", r"tar cf merged\.tar", "it needs the trace of another machine"),
    ("docs/several-boards.md", r"hypermon (record|echo) -b usb:A -b usb:B", "it needs boards that are wired together"),
    ("docs/several-boards.md", r'hypermon record -b "sim:A\.csv',
     "a minute per second of a follower; tests/sim/commands/test_record_several.py wires virtual boards"),
    ("docs/pcie.md", r"make guest OF=pcie", "minutes; .ci/run runs it, and so does tests/e2e/test_pcie_guest.py"),
)

#: Page, beginning of a block of Python, reason.
NOT_RUN_PYTHON: tuple[tuple[str, str, str], ...] = (
    ("docs/nodes.md", "from hypermon.sim.pins import GpioPort", "it writes to pins of the computer"),
    ("docs/nodes.md", "from hypermon_port import PioPort", "it runs in MicroPython, on a board"),
    ("docs/several-boards.md", "from hypermon.host.analysis.by_board", "it needs Spark, which is no package of ours"),
    ("docs/develop/add-a-board.md", "from .model.board", "a module of the package; tests/boards has its own"),
    ("docs/cocotb.md", "import cocotb", "it runs in a simulator; tests/sim/bench does"),
    ("docs/cocotb.md", "from hypermon.hdl.layout import Geometry", "it runs in a simulator; tests/sim/bench does"),
)

#: Statements that run until Ctrl-C, which they get after some seconds. They must end well then.
CTRL_C: tuple[tuple[str, str], ...] = (
    ("", r"(\S*/)?hypermon (serve|view) "),
    ("docs/recording.md", r"hypermon record -b BOARD -o RUN +#"),
    ("", r"(\S*/)?hypermon tail usb:"),
    ("docs/dev-board.md", r"hypermon record -b uart:"),
    ("docs/links.md", r"\S*hypermon record -b uart:/dev/ttyUSB1"),
)

#: Statements that draw on a terminal, and get Ctrl-C from it.
TERMINAL: tuple[tuple[str, str], ...] = (("", r"(\S*/)?hypermon watch "),)

_WIRE = "'uart:./ttyUSB0?timeout=20'"
#: Page (or any), what is written there, what is run. ``ttyUSB0`` is the serial port of a simulated board.
INSTEAD: tuple[tuple[str, str, str], ...] = (
    ("docs/boards/README.md", r"selftest -b uart:/dev/ttyUSB0", "selftest -b sim:"),
    ("docs/first-light.md", r"selftest -b uart:/dev/ttyUSB0", "selftest -b sim:"),
    ("docs/first-picture.md", r"selftest -b uart:/dev/ttyUSB0", "selftest -b sim:"),
    ("docs/first-picture.md", r"record -b '?uart:\S+", "record -b sim:picos.csv"),
    ("docs/several-boards.md", r"usb:A -b uart:/dev/ttyUSB0",
     "sim:demo/life.csv -b sim:demo/life.csv --seconds 0.3 --mode event"),
    ("docs/several-boards.md", r"--boards 256 --nodes 16 --events 100000000", "--boards 5 --nodes 4 --events 20000"),
    ("docs/several-boards.md", r"export RUN --to (perfetto|manifest)", r"export MACHINE --to \1"),
    ("", r"uart:/dev/ttyUSB\d", _WIRE),
    ("docs/live.md", r"(tail|record -b) usb:", r"\1 sim:demo/life.csv"),
    ("docs/live.md", r"-o RUN", "-o RUN-2"),
    ("docs/live.md", r"recordings/run-\S+", "RUN"),
    ("", r"hypermon (serve|view) ", r"hypermon \1 --port 0 "),
    ("docs/recording.md", r"-b BOARD -o RUN", "-b sim:demo/life.csv -o RUN-2"),
    ("docs/dictionary.md", r"RUN --framing event --dictionary work\.toml",
     "demo/run --framing event --dictionary node/life.toml"),
    ("docs/dictionary.md", r"--dictionary work\.toml", "--dictionary app.toml"),
)

#: The example's programs, side by side.
_PICOS = Path(__file__).parents[1] / "node" / "emulators" / "two_picos.py"
_NAMED = "cp node/life.toml app.toml\n"
#: Sixteen nodes that write at any time: sigrok-cli of Debian 12 may abort at its end if a session has no edges.
_STEADY = ("awk 'BEGIN { print \"time_ns,node,port\"; for (t = 1; t < 500; t++) for (n = 0; n < 16; n++) "
           "print t * 100000 + n * 1000 \",\" n \",\" t % 16 \"\\n\" t * 100000 + n * 1000 + 100 \",\" n \",\" "
           "t % 16 + 16 }' > steady.csv\n")
#: Regular expression of pages, and what is done before them.
SETUP: tuple[tuple[str, str], ...] = (
    (r"docs/(dictionary|live|nodes)\.md", _NAMED + "hypermon sim demo/life.csv -o RUN --config extended --mode event\n"
                                           "hypermon decode RUN --dictionary app.toml\n"),
    (r"docs/check\.md", "cp -r demo/run RUN\n"),
    (r"docs/(recording|python)\.md", "hypermon sim demo/life.csv -o RUN --window 1\n"),
    (r"docs/first-picture\.md", f"python {_PICOS} 60 > picos.csv\n"),
    (r"docs/exports\.md", _STEADY + "hypermon sim steady.csv -o RUN --window 1\n"),
    (r"docs/several-boards\.md", "".join(
        f"hypermon record -b sim:demo/life.csv -o {name} --seconds 0.05\n" for name in "AB")),
)

#: Page, beginning of a block of TOML, and the file that the page's commands read it from.
FILES: tuple[tuple[str, str, str], ...] = (
    ("docs/dictionary.md", r"\[nodes\]", "work.toml"),
    ("docs/check.md", r"\[\[rule\]\]\nname = .one has the lock", "locks.toml"),
    ("docs/check.md", r"\[\[rule\]\]\nname = .each border arrives", "life-rules.toml"),
)

#: Page, and a program of Debian that its commands need; the page says so. Its package has the same name.
PROGRAMS: tuple[tuple[str, str], ...] = (("docs/exports.md", "sigrok-cli"),)
