"""The commands by name: where each is defined, and its line in the list of commands.

A command's module is imported when the command is used, so that the others need not be waited for. The commands that
play something on the virtual board, and those of the studies, are entry points of the group ``hypermon.commands``: this
package does not depend on them.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click
from hypermon.host.cli.help_examples import add_examples
from hypermon.host.errors import HypermonError, to_install

__all__ = ["COMMANDS", "ENTRY_POINTS", "CommandTable", "Entry"]

#: The group of entry points.
ENTRY_POINTS = "hypermon.commands"


class Entry(NamedTuple):
    """A command: its module in this package (empty: an entry point), its name there, and the first sentence of its
    help."""

    module: str
    name: str
    line: str


COMMANDS = {
    "analyse": Entry("analyse", "analyse",
                     "Compute figures of every node of a recorded run: on this machine, or on many."),
    "build": Entry("boards", "build_command",
                   "Build the bitstream of a dev board with Yosys, nextpnr and a packer: ten minutes or more."),
    "check": Entry("runs", "check",
                   "Judge a run by RULES: pass, fail, or undecided where something lost could matter "
                   "(docs/check.md)."),
    "compare": Entry("compare", "compare",
                     "Compare two runs, or two groups of runs: durations, latencies, periods, rates, shares, losses "
                     "(docs/compare.md)."),
    "counters": Entry("record", "counters", "Show the counters of a board, without recording, until Ctrl-C."),
    "decode": Entry("runs", "decode", "Turn a recorded run into tables: RUN/events/*.parquet and RUN/loss.parquet."),
    "devices": Entry("devices", "devices",
                     "List the boards that are connected, and what to do if one cannot be opened."),
    "dict": Entry("dictionary", "dictionary",
                  "Show an event dictionary: a TOML file that gives a program's event ids names and fields."),
    "echo": Entry("several_boards", "echo", "Measure the delays of the wires between boards, once, by echo."),
    "emulate": Entry("", "emulate", "Play WORKLOAD as nodes would, in real time."),
    "export": Entry("runs", "export", "Write a recorded run to OUT in another format; `-` is standard output."),
    "flash": Entry("boards", "flash", "Load a bitstream into a board; no HDL tool is needed."),
    "info": Entry("devices", "info", "Describe a board, and its clock's source if this machine has the bitstream."),
    "ipsc": Entry("", "ipsc", "Run programs on an emulated iPSC/2 that HYPERMON monitors."),
    "machine": Entry("", "machine",
                     "Emulate the machines of four more papers, and analyse their recordings."),
    "merge": Entry("runs", "merge", "Merge recordings of several boards, made separately, into one run."),
    "pcie": Entry("devices", "pcie",
                  "Bind boards in PCIe slots to the driver through which they are recorded, or unbind them."),
    "pinout": Entry("boards", "pinout",
                    "Show where to connect the nodes of a dev board; without BOARD, list the boards."),
    "query": Entry("runs", "query",
                   "Query the tables of a recorded run in SQL (DuckDB); without SQL, list the tables."),
    "record": Entry("record", "record", "Record a board, or several as one, until Ctrl-C."),
    "relay": Entry("live", "relay", "Let another machine record a board of this machine; nothing is kept here."),
    "report": Entry("runs", "report",
                    "Write a report of a recorded run: one HTML page with figures and tables, for any browser."),
    "selftest": Entry("devices", "selftest", "Let a board test itself, with no node attached."),
    "serve": Entry("live", "serve", "Show a board or a recording as a web page, live."),
    "sim": Entry("", "sim", "Play STIMULUS on the virtual board and record the output."),
    "stats": Entry("runs", "stats", "Show the figures of a recorded run."),
    "tail": Entry("live", "tail", "Print a line per item of a recording, finished or not, or of a board."),
    "trim": Entry("runs", "trim",
                  "Write a part of a recorded run to OUT, as a run of its own: some nodes, a span of time, or both."),
    "view": Entry("live", "view", "Show the timeline of a recorded run as a web page, from hours to single clocks."),
    "watch": Entry("live", "watch", "Show a board or a recording in the terminal, live."),
    "wirecheck": Entry("boards", "wirecheck",
                       "Find swapped, stuck and missing wires while the nodes call hm_wire_check() repeatedly."),
}


class CommandTable(click.Group):
    """A group of commands that are imported when they are used; the list of commands needs none of them.

    Parameters
    ----------
    table : the commands.
    options : of :class:`click.Group`.
    """

    def __init__(self, table: Mapping[str, Entry], **options: Any):
        super().__init__(**options)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        command = _load(cmd_name, entry)
        add_examples(cmd_name, command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        rows = [(name, click.Command(name, help=self._table[name].line).get_short_help_str(limit)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _load(name: str, entry: Entry) -> click.Command:
    if entry.module:
        command: click.Command = getattr(import_module(f"hypermon.host.cli.{entry.module}"), entry.name)
        return command
    from importlib.metadata import distributions

    # Not entry_points(): of two distributions of one name it reads the first only, and a checkout may have what an
    # earlier build left.
    for distribution in distributions():
        for found in distribution.entry_points.select(group=ENTRY_POINTS, name=name):
            return found.load()  # type: ignore[no-any-return]
    return _not_installed(name, entry)


def _not_installed(name: str, entry: Entry) -> click.Command:
    def refuse(**_: Any) -> NoReturn:
        raise HypermonError(f"`hypermon {name}` belongs to hypermon-studies, which is not installed: "
                            f"{to_install('studies')}")

    taken = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    return click.Command(name, callback=refuse, help=entry.line, params=[taken], add_help_option=False,
                         context_settings={"ignore_unknown_options": True})
