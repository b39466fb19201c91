"""QsNet: its queues, and the relations that recordings show."""

from random import Random

import numpy as np
import pytest
from hypermon.studies.machine.core.queues import Calendar
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import qsnet
from hypermon.studies.machine.machines.elan import ELAN, MAIN, Elan, Model
from hypermon.studies.machine.page.blind import drawn_qsnet
from hypermon.studies.machine.page.blind_rows import _qsnet
from hypermon.studies.machine.page.rows import Data
from hypermon.studies.machine.page.tasks import _steps_and_rates

from tests.studies.machine.dry import analysed, reading


def test_a_job_takes_the_first_gap_that_is_long_enough():
    server = Calendar()
    assert server.book(0, 10, 5) == 10
    assert server.book(0, 0, 8) == 0
    assert server.book(0, 0, 3) == 15
    assert server.book(0, 7, 2) == 8
    assert server.book(18, 0, 5) == 18


@pytest.mark.parametrize(("model", "rate"), [(Model(), 312.0), (Model(pci_read=250), 250.0),
                                             (Model(pci_read=390, pci_write=390, sdram=300), 390.0)])
def test_a_message_is_as_fast_as_its_slowest_stage(model, rate):
    network, at = Elan(model), 0.0
    legs = model.put(320 * 1000)
    for leg in legs:
        at = network.traverse(at, 0, 1, leg)
    assert 320_000 / at == pytest.approx(min(rate, model.payload_rate), rel=0.01)


def both(monkeypatch, model, *modes):
    session = Session(qsnet.machine(model), 2)
    for mode in modes:
        qsnet.ping(session, model, mode, sizes=qsnet.SIZES[-3:], count=3, both=True)
    return {(row["source"], row["destination"]): row["mb_per_s"] for row in analysed(monkeypatch, "qsnet", session)[
        "rates"]}


def test_memory_that_is_read_and_written_at_once_is_the_bottleneck_until_it_is_fast_enough(monkeypatch):
    modes = qsnet.Mode("put", MAIN, ELAN), qsnet.Mode("put", ELAN, ELAN)
    slow = both(monkeypatch, Model(), *modes)
    assert slow["main", "elan"] > slow["elan", "elan"]
    fast = both(monkeypatch, Model(sdram=1000, pci_read=250), *modes)
    assert fast["main", "elan"] < fast["elan", "elan"]


def test_a_long_message_waits_for_its_receiver_and_a_short_one_does_not():
    model, spent = Model(), {}
    for size in (model.inline, model.inline + 1):
        session = Session(qsnet.machine(model), 2)
        qsnet.ping(session, model, qsnet.Mode("mpi"), sizes=(size,), count=1, late_us=50.0)
        port = session.recorders[0]
        at = {record[0]: us for us, record in zip(port.times, port.records, strict=True)}
        spent[size] = at[0x11] - at[0x10]
    short, long = spent.values()
    assert short < 10
    assert long > 50


@pytest.mark.parametrize("seed", range(1, 21))
def test_what_is_drawn_is_found(monkeypatch, seed):
    model, planted = drawn_qsnet(Random(seed))
    session = Session(qsnet.machine(model, seed=seed), 2)
    _steps_and_rates(session, model)
    done = analysed(monkeypatch, "qsnet", session)
    row = {"task": "one", "seed": seed, **planted, **{
        name: value for name, value in done.items() if isinstance(value, int | float)}}
    assert _qsnet(Data({"rates": [{"task": "one", "seed": seed, **rate} for rate in done["rates"]]}), row) == []


def spot(operation, *users, count=6):
    session = Session(qsnet.machine(), max(users))
    for many in users:
        qsnet.hotspot(session, Model(), qsnet.Mode(operation), many, count=count)
    return session


@pytest.mark.parametrize(("operation", "rate"), [("put", 322), ("get", 312)])
def test_one_server_is_shared_evenly(monkeypatch, operation, rate):
    one, four = analysed(monkeypatch, "qsnet", spot(operation, 1, 4))["hotspot"]
    assert (one["nodes"], four["nodes"]) == (1, 4)
    assert four["mb_per_s"] == pytest.approx(rate, rel=0.01)
    assert one["mb_per_s"] == pytest.approx(rate, rel=0.1)
    assert four["share"] == pytest.approx(0.25)
    assert four["unfair"] < 0.02


def test_a_hotspot_with_missing_events_is_left_out(monkeypatch):
    # A loss near to a begin could be of another begin.
    session = spot("put", 2, count=20)
    middle = session.recorders[1].times[-5]
    done = analysed(monkeypatch, "qsnet", session, losses=((1, middle - 1, middle + 1),))
    assert done["hotspot"] == []
    assert done["left_out"] == ["hotspot of 2 nodes: a loss covers it"]
    assert any("were lost" in text for text in done["warnings"])


def test_stamps_of_a_node_that_are_wrong_are_said(monkeypatch):
    session = Session(qsnet.machine(), 2)
    qsnet.ping(session, Model(), qsnet.Mode("put", ELAN, ELAN), sizes=(0, 64), count=10)
    assert analysed(monkeypatch, "qsnet", session)["warnings"] == []
    done = analysed(monkeypatch, "qsnet", session, late=((1, -2.0),))
    assert done["early"] == 20
    assert any("before they were sent" in text for text in done["warnings"])


def test_dropped_events_leave_messages_out(monkeypatch):
    session = Session(qsnet.machine(), 2)
    qsnet.ping(session, Model(), qsnet.Mode(), sizes=(0, 64), count=50)
    begun = reading(session).programs[0].from_us
    random = np.random.default_rng(1)
    done = analysed(monkeypatch, "qsnet", session,
                    keep=lambda port, us: (us <= begun + 100) | (random.random(len(us)) > 0.01))
    assert any("of the messages" in text for text in done["left_out"])
    assert [row["us"] for row in done["latency"]] == [pytest.approx(1.94, abs=0.02)] * 2


def test_another_parameter_is_said(monkeypatch):
    session = Session(qsnet.machine(), 1)
    mode = qsnet.Mode()
    monkeypatch.setattr(qsnet.Mode, "parameter", lambda self, size: 0xff << 24 | size)
    qsnet.hotspot(session, Model(), mode, 1, count=2)
    done = analysed(monkeypatch, "qsnet", session)
    assert done["hotspot"] == []
    assert done["left_out"][0] == "a program of node 1 with parameter 4278190080 + 32768: an unknown operation"
