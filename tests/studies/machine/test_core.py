"""The emulated machines: who waits for whom, what noise does, and which events reach a port."""

from random import Random

import pytest
from hypermon.studies.machine.core.board import board_of, stimulus_of
from hypermon.studies.machine.core.crowd import Crowd
from hypermon.studies.machine.core.kernel import Kernel, Leg, Meet, Receive
from hypermon.studies.machine.core.network import Circuits, ecube
from hypermon.studies.machine.core.noise import RULES, NodeNoise, Source
from hypermon.studies.machine.core.records import kinds_of
from hypermon.studies.machine.core.session import MARKS, Label, Machine, Session
from hypermon.studies.machine.machines import asciq

LABEL = Label(1, 1)


class Some:
    def __init__(self, us):
        self.us = us


def test_ids_are_the_fixed_ones():
    ids = {name: kind.id for name, kind in kinds_of().items()}
    assert ids == {"mark": 1, "begin": 2, "end": 3, "long_mark": 4, "send": 16, "sent": 17, "receive": 18,
                   "received": 19, "arrive": 24, "leave": 25, "quantum": 32, "ready": 40, "step": 41}
    assert kinds_of()["begin"].size == 11
    assert kinds_of()["send"].size == 9


def test_paths_take_the_lowest_bit_first():
    assert ecube(0, 0b1011) == [(0, 1), (1, 3), (3, 11)]
    assert all(edge == (7, 15) for edge in set(ecube(7, 15)))


def test_a_path_is_reserved_whole():
    circuits = Circuits()
    assert circuits.traverse(0, 0, 7, Leg(100, 10)) == 130
    # It shares the last edge only, and waits for it; the first edge of another one is taken meanwhile.
    assert circuits.traverse(5, 3, 7, Leg(50, 10)) == 190
    assert circuits.traverse(6, 7, 3, Leg(50, 10)) == 66
    circuits.reset()
    assert circuits.traverse(5, 3, 7, Leg(50, 10)) == 65


def test_some_meet_while_others_do_not():
    members = {number: Some(us) for number, us in enumerate((5.0, 9.0, 2.0))}

    def two(number):
        end = yield Meet(0, 1, (0, 1))
        return end

    def alone():
        return 7
        yield

    steps = {0: two(0), 1: two(1), 2: alone()}
    assert Kernel(members, steps, lambda *leg: 0).run() == {0: 9.0, 1: 9.0, 2: 7}


def test_nodes_that_wait_for_ever_are_noticed():
    def waits():
        yield Receive(1)

    with pytest.raises(RuntimeError, match="never come"):
        Kernel({0: Some(0)}, {0: waits()}, lambda *leg: 0).run()


@pytest.mark.parametrize(("rule", "end"), [("timeline", 1200), ("absorb", 1100), ("defer", 1300)])
def test_what_a_freeze_does_to_a_node_that_waits(rule, end):
    """It is due at 900 while the node waits from 100 to 1000; the next computation takes 100."""
    noise = NodeNoise([Source(1.0, 0.2, phase=900e-6)], Random(1), rule)
    assert noise.compute(0, 100) == 100
    assert noise.compute(1000, 100) == end


def test_a_freeze_in_a_computation_is_all_of_it():
    noise = NodeNoise([Source(0.001, 0.5, phase=0.05)], Random(1))
    assert noise.compute(0, 100) == 600
    with pytest.raises(ValueError, match="the rule is one of"):
        NodeNoise([], Random(1), "sometimes")


def test_a_crowd_is_like_its_nodes():
    """A crowd of 1024, and one of 992 with 32 real nodes."""
    means = []
    for real in ((0,), range(32)):
        session = Session(asciq.machine(seed=4), 1)
        asciq.bsp(session, us=5000, seconds=20, ports=(0,), real=real, shown_s=0)
        leaves = [at for at, record in zip(session.recorders[0].times, session.recorders[0].records, strict=True)
                  if record[0] == 0x19]
        means.append((leaves[-1] - leaves[0]) / (len(leaves) - 1))
    assert means[0] > 10_000
    assert means[1] == pytest.approx(means[0], rel=0.02)


@pytest.mark.parametrize("rule", RULES)
def test_a_crowd_is_all_of_its_nodes(rule):
    """Beside each node on its own, operation after operation."""
    noise = asciq.Daemons({asciq.ALL: (Source(0.05, 1.0), Source(0.3, 9.0))})
    crowd, begin = Crowd(range(20), noise, 5, rule), 0.0
    nodes = [NodeNoise(noise.sources(node), Random(5 * 100_003 + node), rule) for node in range(20)]
    for _ in range(300):
        last = max(node.compute(begin, 700) for node in nodes)
        assert crowd.last(begin, 700) == pytest.approx(last)
        begin = last + 5


def test_a_crowd_without_noise_is_punctual():
    assert Crowd(range(10), asciq.Daemons({}), 1).last(100, 50) == 150
    assert Crowd([], asciq.Daemons(), 1).last(100, 50) == 100


def test_only_ports_are_written_to_and_pay():
    def program(node):
        node.log("quantum", 1)
        return node.us
        yield

    session = Session(Machine(300), 1)
    ends = session.run(LABEL, {7: program, 299: program}, {0: 299})
    assert ends[299] == pytest.approx(ends[7] + 0.2 + 0.05 * 6)
    records = session.recorders[0].records
    assert [record[0] for record in records] == [1] * MARKS + [4] * MARKS + [2, 0x20, 3]
    assert records[2 * MARKS][1:5] == (299).to_bytes(2, "little") + (300).to_bytes(2, "little")
    again = session.run(LABEL, {7: program}, {0: 7})
    assert session.recorders[0].records[-3][1:3] == (7).to_bytes(2, "little")
    assert again[7] > ends[7]


def test_nobody_who_records_costs_nothing():
    def program(node):
        node.log("quantum", 1)
        return node.us
        yield

    session = Session(Machine(2), 1, raw=True)
    assert len(set(session.run(LABEL, {0: program, 1: program}, {0: 0}).values())) == 1
    assert session.recorders[0].records == []


def test_marks_of_many_ports_come_four_at_a_time():
    def program(node):
        return None
        yield

    session = Session(Machine(32), 32)
    session.run(LABEL, dict.fromkeys(range(32), program), {port: port for port in range(32)})
    begins = sorted(recorder.times[0] for recorder in session.recorders)
    assert all(late - early > 30 for early, late in zip(begins[:-4], begins[4:], strict=True))
    assert len({recorder.times[2 * MARKS] for recorder in session.recorders}) == 1
    writes = stimulus_of(session.recorders)
    assert writes.nodes == 32
    assert writes.port.max() < 1 << 9


def test_boards_are_large_enough():
    assert [board_of(ports).geometry.nodes for ports in (1, 4, 5, 16, 17, 32)] == [4, 4, 16, 16, 32, 32]
    with pytest.raises(ValueError, match="32 ports at most"):
        board_of(33)
