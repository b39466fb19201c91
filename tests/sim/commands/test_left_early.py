"""A program in which a node leaves a barrier too early once in 10,000 times: a rule fails there, and nowhere else."""

import json
import random
from pathlib import Path

from hypermon.host import cli
from hypermon.sim.pins import Port

NODES, BARRIERS, PLANTED = 4, 7500, 3
LIFE = Path(__file__).parents[3] / "node" / "life.toml"
RULES = """
[[rule]]
name = "nobody enters a barrier that was left"
kind = "absence"
event = "barrier_enter"
after = "barrier_leave"
within = "25 us"
key = ["generation"]

[[rule]]
name = "all enter within 25 us"
kind = "together"
event = "barrier_enter"
within = "25 us"
key = ["generation"]

[[rule]]
name = "each node enters and leaves"
kind = "order"
events = ["barrier_enter", "barrier_leave"]
"""


class Written(Port):
    """A node's port on paper: writes are 40 ns apart."""

    def __init__(self, node: int) -> None:
        super().__init__(4)
        self.node, self.at, self.rows = node, 0, list[tuple[int, int, int]]()

    def write(self, value: int) -> None:
        self.rows.append((self.at, self.node, value))
        self.at += 40

    def close(self) -> None:
        pass

    def say(self, at: int, event: int, generation: int) -> None:
        self.at = at
        self.event(event, generation.to_bytes(2, "little"))


def program(rng: random.Random, planted: dict[int, int]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """The writes of all nodes; and for each planted barrier about when its node leaves."""
    ports, early = [Written(node) for node in range(NODES)], list[int]()
    for barrier in range(BARRIERS):
        begin = 10_000 + 40_000 * barrier
        enters = [begin + rng.randrange(10_000) for _ in ports]
        if barrier in planted:
            node = planted[barrier]
            enters[node], enters[(node + 1) % NODES] = begin, begin + 20_000
            early.append(begin + 5000)
        leave = max(enters) + 3000
        for port, enter in zip(ports, enters, strict=True):
            port.say(enter, 5, barrier)
            port.say(begin + 5000 if planted.get(barrier) == port.node else leave + rng.randrange(2000), 6, barrier)
    return sorted(row for port in ports for row in port.rows), early


def test_a_barrier_left_early(tmp_path: Path, capsys) -> None:
    rng = random.Random(1)
    planted = {barrier: rng.randrange(NODES) for barrier in sorted(rng.sample(range(BARRIERS), PLANTED))}
    rows, early = program(rng, planted)
    (tmp_path / "life.csv").write_text(
        "time_ns,node,port\n" + "".join(f"{at},{node},{port}\n" for at, node, port in rows))
    (tmp_path / "rules.toml").write_text(RULES)
    run = str(tmp_path / "run")
    assert cli._run(["sim", str(tmp_path / "life.csv"), "-o", run, "--config", "extended", "--mode", "event",
                     "--window", "1", "--dictionary", str(LIFE)]) == 0
    capsys.readouterr()
    assert cli._run(["check", run, str(tmp_path / "rules.toml"), "--json"]) == 1
    entered, together, order = json.loads(capsys.readouterr().out)["rules"]
    # Somebody may enter the last barrier after the end.
    assert (entered["verdict"], entered["failed"], entered["undecided"]) == ("fail", PLANTED, NODES)
    assert entered["instances"] == NODES * BARRIERS == 10_000 * PLANTED
    where = entered["where"][:PLANTED]
    assert [place["node"] for place in where] == list(planted.values())
    for place, at in zip(where, early, strict=True):
        assert 0 <= place["time_ps"] - 1000 * at < 2_000_000        # the event is being written until then
    assert (together["verdict"], together["instances"]) == ("pass", BARRIERS)
    assert (order["verdict"], order["instances"], order["undecided"]) == ("pass", 2 * NODES * BARRIERS, 0)
