"""The emulated cube: who waits for whom, what events cost, and what the three recorders leave behind."""

import re

import pytest
from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.machine import Machine, run
from hypermon.studies.ipsc.machine.network import Hypercube, Timing
from hypermon.studies.ipsc.machine.noise import Clocks, Noise
from hypermon.studies.ipsc.machine.nx2 import KINDS, bare_dictionary

#: No time slices, all begin at once.
QUIET = Noise(slice_us=1e12, load_us=0, jitter=0, clocks=Clocks(0, 0))


def test_sizes_of_events_are_the_papers():
    sizes = sorted(kind.payload for kind in KINDS.values())
    assert (sizes[0], sizes[-1]) == (2, 13)
    assert KINDS["slice"].payload == 9


def test_events_of_a_message_have_4_8_bytes_on_average():
    sent = ["call", "send", "return"]
    received = ["call", "process", "switch", "receive", "process", "switch", "return"]
    sizes = [KINDS[name].payload for name in sent + received]
    assert sum(sizes) / len(sizes) == pytest.approx(4.8)


def test_a_board_that_stamps_needs_no_delta():
    assert "delta =" not in bare_dictionary()
    assert "sequence" in bare_dictionary()


def test_a_nibble_costs_what_the_bandwidth_test_found():
    cpu = Cpu()
    assert 1e6 / cpu.period_us(0) == pytest.approx(113_000, rel=1e-3)
    assert cpu.period_us(20) - cpu.period_us(0) == pytest.approx(16.25)


def test_messages_go_by_the_lowest_bit_first():
    assert Hypercube.path(0b0000, 0b1011) == [(0b0000, 0b0001), (0b0001, 0b0011), (0b0011, 0b1011)]
    assert Hypercube.path(5, 5) == []


def test_an_edge_carries_one_message_at_a_time():
    cube, alone = Hypercube(), Timing().transit(1000, 1)
    first = cube.deliver(0, 0, 1, 1000)
    assert first == alone
    # By the edge 0-1, then 1-3: it waits for the first. The way back is another edge.
    assert cube.deliver(0, 0, 3, 1000) == first + Timing().transit(1000, 2)
    assert cube.deliver(0, 1, 0, 1000) == alone
    cube.reset()
    assert cube.deliver(0, 0, 1, 1000) == alone


def ping(node):
    """Node 0 sends, node 1 waits."""
    if node.number == 0:
        node.compute(16_000)
        yield from node.send(1, 8, "here")
        return None
    return (yield from node.receive(0))


def test_a_receiver_waits_for_the_message():
    course = run(Machine(2, noise=QUIET), ping)
    timing = Timing()
    assert course.results == [None, "here"]
    assert course.nodes[1].us == pytest.approx(1000 + 2 * timing.software(8) + timing.transit(8, 1))


def test_slices_end_at_their_times():
    def idle(node):
        node.compute(16_000_000)
        yield from ()

    noise = Noise(load_us=0)
    course = run(Machine(1, noise=noise), idle, "software")
    slices = course.nodes[0].recorder.trace.count(bytes([KINDS["slice"].id, 100, 0, 100, 0]))
    assert slices in (20, 21)


def test_software_costs_3_2_us_a_byte():
    raw, soft = (run(Machine(2, noise=QUIET), ping, how) for how in ("raw", "software"))
    size = len(soft.nodes[0].recorder.trace)
    assert soft.nodes[0].us - raw.nodes[0].us == pytest.approx(3.2 * size)


@pytest.mark.parametrize("delay", [0, 20])
def test_hardware_costs_its_nibbles(delay):
    raw, hard = (run(Machine(2, noise=QUIET), ping, how, delay=delay) for how in ("raw", "hardware"))
    records = hard.nodes[0].recorder.records
    nibbles = sum(2 * (len(record) + 1) for record in records)
    cpu = Cpu()
    assert hard.nodes[0].us - raw.nodes[0].us == pytest.approx(
        nibbles * cpu.period_us(delay) + len(records) * cpu.us(cpu.event))


def test_polls_are_fewer_when_they_cost_more():
    def wait(node):
        if node.number == 0:
            node.compute(160_000)
            yield from node.send(1, 8)
        else:
            yield from node.poll(0, 45)

    soft, hard = (run(Machine(2, noise=QUIET), wait, how) for how in ("software", "hardware"))
    kind = KINDS["call"]
    in_software = len(re.findall(bytes([kind.id, 3]), soft.nodes[1].recorder.trace))
    in_hardware = sum(record.startswith(bytes([kind.id, 3])) for record in hard.nodes[1].recorder.records)
    assert in_software > 100 > 20 > in_hardware > 2


def test_nodes_that_wait_for_ever_are_told():
    def wait(node):
        yield from node.receive(1 - node.number)

    with pytest.raises(RuntimeError, match="never come"):
        run(Machine(2), wait)


def test_a_cube_has_a_power_of_two():
    with pytest.raises(ValueError, match="not 3"):
        Machine(3)
