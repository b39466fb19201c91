"""Rules about two boards whose times are wrong by a planted amount: undecided where the uncertainty covers it."""

import json

import numpy as np
import pytest
from hypermon.host import cli
from hypermon.host.run import open_run

#: The same moments on both boards; how far apart a rule allows them to be; by how much one board's times are wrong.
EVENTS, WITHIN_NS, PLANTED_NS = 60, 150, [0, 60, 90, 100, 110, 130, 150, 170, 190, 200, 210, 250, 400]
#: The difference of two stamps: a window and a clock (docs/check.md).
STAMPS_PS = 20_001
RULE = f"""
[[rule]]
name = "both at once"
kind = "together"
event = "mark"
key = ["n"]
within = "{WITHIN_NS} ns"
"""


def marks(path) -> None:
    """Events of id 1 and a number."""
    rows = []
    for k in range(EVENTS):
        at = 4003 + 2017 * k
        for nibble in (2, 1, 0, k % 16, k // 16):
            rows += [f"{at},0,{nibble}", f"{at + 40},0,{16 + nibble}", f"{at + 90},0,{nibble}"]
            at += 130
    path.write_text("\n".join(["time_ns,node,port", *rows]) + "\n")


@pytest.fixture
def run(extended, tmp_path, capsys):
    """The recording of two boards with a wire between them, and a dictionary."""
    marks(tmp_path / "marks.csv")
    boards = [word for asked in ("?ppm=-20", "?ppm=35&wire_ns=60")
              for word in ("-b", f"sim:{tmp_path / 'marks.csv'}{asked}")]
    words = ["record", *boards, "-o", str(tmp_path / "run"), "--config", "extended", "--mode", "event", "--follow"]
    assert cli._run([*words, "--window", "1"]) == 0, capsys.readouterr().err
    (tmp_path / "events.toml").write_text('[mark]\nid = 1\nfields = { n = "u8" }\n')
    assert cli._run(["decode", str(tmp_path / "run"), "--dictionary", str(tmp_path / "events.toml")]) == 0
    return tmp_path / "run"


def plant(run, off_ns) -> None:
    """Makes the wire between the boards so much longer than it is."""
    info = json.loads((run / "recording.json").read_text())
    info.pop("check", None)
    info["wires"][1] |= {"delay_ps": 60_000 + 1000 * off_ns, "uncertainty_ps": 5000}
    (run / "recording.json").write_text(json.dumps(info))


def test_verdicts_flip_where_the_uncertainty_ends(run, tmp_path, capsys):
    (tmp_path / "rules.toml").write_text(RULE)
    found = {}
    for off in PLANTED_NS:
        plant(run, off)
        capsys.readouterr()
        cli._run(["check", str(run), str(tmp_path / "rules.toml"), "--json"])
        verdict = json.loads(capsys.readouterr().out)["verdict"]
        opened = open_run(run)
        [_, aligned] = opened.stats()["boards"]
        times = [opened.events(nodes=[16 * k]).column("time_ps").to_pylist() for k in range(2)]
        assert list(map(len, times)) == [EVENTS] * 2
        apart = [abs(one - other) for one, other in zip(*times, strict=True)]
        slack = STAMPS_PS + 1000 * aligned["uncertainty_ns"]
        limit = 1000 * WITHIN_NS
        assert verdict == ("fail" if max(apart) > limit + slack else "pass" if max(apart) <= limit - slack
                           else "undecided"), (off, max(apart), slack)
        found[off] = verdict
    assert set(found.values()) == {"pass", "undecided", "fail"}
    assert (found[PLANTED_NS[0]], found[WITHIN_NS], found[PLANTED_NS[-1]]) == ("pass", "undecided", "fail")


def test_boards_by_a_stated_offset_may_drift_apart(extended, tmp_path, capsys):
    """The offset is that of the beginning. The same moments are 100 ppm apart from then on, and the rule is true."""
    rows = [f"{1_000_000 * k + at},0,{port}" for k in range(1, 20) for at, port in ((0, 1), (40, 17), (90, 1))]
    (tmp_path / "marks.csv").write_text("\n".join(["time_ns,node,port", *rows]) + "\n")
    for name, ppm in (("a", 50), ("b", -50)):
        assert cli._run(["record", "-b", f"sim:{tmp_path / 'marks.csv'}?ppm={ppm}", "-o", str(tmp_path / name),
                         "--config", "extended"]) == 0, capsys.readouterr().err
    assert cli._run(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "both"), "--offset",
                     f"{tmp_path / 'b'}=0"]) == 0
    (tmp_path / "rules.toml").write_text("""
[[rule]]
name = "each mark is on both"
kind = "response"
after = { event = "nibble:1", nodes = [0] }
expect = { event = "nibble:1", nodes = [16] }
max = "100 ns"
""")
    run = open_run(tmp_path / "both")
    apart = abs(np.diff([run.events(nodes=[16 * k]).column("time_ps").to_numpy()[-1] for k in range(2)])[0])
    assert apart > 10**6
    assert cli._run(["check", str(tmp_path / "both"), str(tmp_path / "rules.toml")]) == 4
