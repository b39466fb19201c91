"""Examples below the help of every command."""

import click

__all__ = ["EXAMPLES", "add_examples"]

#: Command, and lines to type for it, with what they do.
EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "devices": [("hypermon devices", "the boards, and what to do if one cannot be opened"),
                ("hypermon devices --json", "")],
    "info": [("hypermon info -b uart:/dev/ttyUSB0", "nodes, clock, depths, gateware"),
             ("hypermon info -b sim: --json", "")],
    "sim": [("hypermon sim play.csv -o RUN", "the board of 1990"),
            ("hypermon sim play.csv -o RUN --config extended --mode 3=event", "node 3 writes events"),
            ("hypermon sim probe.sr -o RUN --port 0=D0,D1,D2,D3,CLK", "the recording of a logic analyzer"),
            ("hypermon sim play.csv -o RUN --drain-rate 5e6 --stall 20,25", "a slow host that stalls")],
    "record": [("hypermon record -b uart:/dev/ttyUSB0 -o RUN", "until Ctrl-C"),
               ("hypermon record -b usb: -o RUN --config extended --seconds 60", ""),
               ("hypermon record -b usb: -o RUN --config extended --start node=2,nibble=7 --pretrigger 100", ""),
               ("hypermon record -b usb:A -b usb:B -o RUN --config extended --follow", "two boards, one time"),
               ("hypermon record -b usb: -o RUN --json", "progress for another program"),
               ("hypermon record -b usb: -o RUN --check rules.toml --until-fail", "stop at the first violation")],
    "counters": [("hypermon counters -b usb: --seconds 3600 --every 60", "an hour in one small table"),
                 ("hypermon counters -b usb: --seconds 10 --json", "")],
    "emulate": [("hypermon emulate RUN -o AGAIN", "each node is a thread, on the virtual board"),
                ("hypermon emulate RUN --uf2 node3.uf2 --node 3", "a Pico that plays node 3")],
    "selftest": [("hypermon selftest -b uart:/dev/ttyUSB0", ""), ("hypermon selftest -b sim: --json", "")],
    "analyse": [("hypermon analyse RUN rate -o rate.parquet", "items per millisecond"),
                ("hypermon analyse RUN latency --send 'event = 3' --receive 'event = 4' --key payload", ""),
                ("hypermon analyse RUN noise --dask tcp://10.0.0.1:8786", "on the workers of a Dask cluster")],
    "check": [("hypermon check RUN rules.toml", "a table of the rules, and where they fail"),
              ("hypermon check RUN rules.toml --json --junit report.xml", "for other programs, and for CI"),
              ("hypermon check RUN", "messages: was any received before it was sent?")],
    "compare": [("hypermon compare BASE CHANGE", "two runs, or two directories of runs"),
                ("hypermon compare BASE CHANGE --fail-if 'latency.p99 > +5 %'", "exit status 1 if it is slower"),
                ("hypermon compare BASE CHANGE --markdown >> $GITHUB_STEP_SUMMARY", "in CI")],
    "decode": [("hypermon decode RUN", ""),
               ("hypermon decode RUN --framing event --dictionary app.toml", "names and fields for events")],
    "export": [("hypermon export RUN --to csv -", "to standard output"),
               ("hypermon export RUN --to fst run.fst --nodes 0-3 --from-ms 20 --to-ms 30", ""),
               ("hypermon export RUN --to ctf trace && babeltrace2 trace", "")],
    "report": [("hypermon report RUN", "writes RUN/report.html"),
               ("hypermon report RUN -o part.html --from-ms 20 --to-ms 30", "")],
    "trim": [("hypermon trim RUN PART --from-ms 20 --to-ms 30", ""), ("hypermon trim RUN PART --nodes 0-3", "")],
    "merge": [("hypermon merge A B -o BOTH", "aligned by the computer's clock"),
              ("hypermon merge A B -o BOTH --offset B=12.5", "board B began 12.5 ms after board A")],
    "stats": [("hypermon stats RUN", ""), ("hypermon stats RUN --json", "")],
    "dict": [("hypermon dict app.toml", "what is in it"), ("hypermon dict app.toml --check", ""),
             ("hypermon dict app.toml --c-header app.h", "functions that write its events")],
    "echo": [("hypermon echo -b usb:A -b usb:B -o wires.json",
              "then: hypermon record -b usb:A -b usb:B -o RUN --config extended --follow --echo wires.json")],
    "pcie bind": [("sudo hypermon pcie bind 0000:01:00.0", "then: hypermon record -b pcie:0000:01:00.0 -o RUN")],
    "pcie unbind": [("sudo hypermon pcie unbind 0000:01:00.0", "")],
    "ipsc run": [("hypermon ipsc run life --nodes 4 --share 0.002", "a part of the run of Table 2"),
                 ("hypermon ipsc run matmul --nodes 8 --config extended --json", "")],
    "machine run": [("hypermon machine run ipsc860 path --json", "messages by size and distance"),
                    ("hypermon machine run asciq bsp --nodes 1024 --drop 0,1,31 --count 500", "")],
    "machine analyse": [("hypermon machine analyse asciq RUN --json", "any recording with these events")],
    "ipsc bench": [("hypermon ipsc bench --nodes 2 --delay 0 --bytes 400", ""),
                   ("hypermon ipsc bench --nodes 1 --json", "")],
}


def add_examples(name: str, command: click.Command) -> None:
    """Puts them below the help of a command, and of the commands of a group."""
    if isinstance(command, click.Group):
        for below, one in command.commands.items():
            add_examples(f"{name} {below}", one)
    if name in EXAMPLES:
        lines = EXAMPLES[name]
        width = max((len(line) for line, comment in lines if comment), default=0)
        shown = [f"  {line:{width}}  {comment}".rstrip() for line, comment in lines]
        command.epilog = "\n".join(["\b", "Examples:", *shown])
