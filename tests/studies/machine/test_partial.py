"""Recordings with fewer ports than nodes, or with fields in another order: no figure is wrong without a word."""

import struct

import numpy as np
import pytest
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import ipsc860, qsnet, sp2
from hypermon.studies.machine.machines.elan import Model
from hypermon.studies.machine.machines.ipsc860 import EDGES_2

from tests.studies.machine.dry import analysed


def contended(paths=4):
    session = Session(ipsc860.machine(seed=1), 16)
    for number in (1, paths):
        ipsc860.contended(session, "edges-2", number, 7000, count=5)
    return session


def without(*ports):
    return lambda port, us: ~np.isin(port, ports)


def test_a_path_with_one_port_is_counted(monkeypatch):
    session = contended()
    whole = analysed(monkeypatch, "ipsc860", session)
    # Of the third pair, only the source has a port; of the fourth, only the target, which says what it receives alone.
    target = session.recorders[7]
    own = [(time, record) for time, record in zip(target.times, target.records, strict=True) if record[0] != 0x10]
    target.times[:], target.records[:] = (list(column) for column in zip(*own, strict=True))
    done = analysed(monkeypatch, "ipsc860", session, keep=without(5, 6))
    assert [row["paths"] for row in done["ratios"]] == [row["paths"] for row in whole["ratios"]] == [1, 4]
    assert done["ratios"][1]["ratio"] == pytest.approx(whole["ratios"][1]["ratio"], rel=1e-6)
    absent = sorted((EDGES_2[2][1], EDGES_2[3][0]))
    assert f"messages of nodes {absent[0]}, {absent[1]} have no one-way times: no port begins as such a node" in done[
        "warnings"]


def test_one_port_alone_has_no_one_way_times(monkeypatch):
    for machine, session in (("ipsc860", contended()), ("qsnet", pinged())):
        done = analysed(monkeypatch, machine, session, keep=lambda port, us: port == 0)
        assert any(text.startswith("all one-way times: none of ") for text in done["left_out"])
        assert any("1 figure is left out" in text for text in done["warnings"])


def pinged():
    session = Session(qsnet.machine(seed=1), 2)
    qsnet.ping(session, Model(), qsnet.Mode(), sizes=(64, 128), count=3)
    return session


def reordered(session, orders):
    """The same session by a program that writes an event's fields in another order."""
    for recorder in session.recorders:
        recorder.records[:] = [
            bytes([record[0]]) + struct.pack("<" + orders[record[0]][1], *(
                struct.unpack("<" + orders[record[0]][0], record[1:])[at] for at in orders[record[0]][2]))
            if record[0] in orders else record for record in recorder.records]
    return session


def test_fields_in_another_order_are_noticed(monkeypatch):
    swapped = {0x10: ("HHI", "IHH", (2, 0, 1)), 0x13: ("HHI", "IHH", (2, 0, 1))}
    for machine, session in (("ipsc860", contended()), ("qsnet", pinged())):
        done = analysed(monkeypatch, machine, reordered(session, swapped))
        assert any("fields the order of studies/machine/events.toml" in text for text in done["left_out"])
        assert not done.get("ratios")
        assert not done.get("latency")


def test_steps_and_nodes_that_cannot_be_are_left_out(monkeypatch):
    session = Session(sp2.machine(seed=1), 4)
    sp2.all_to_all(session, 4, count=5)
    for recorder in session.recorders:
        recorder.records[:] = [record[:1] + record[3:5] + b"\x09\x00" if record[0] in (0x28, 0x29) else record
                               for record in recorder.records]
    done = analysed(monkeypatch, "sp2", session)
    assert done["all_to_all"] == []
    assert any("name a step or a node that it does not have" in text for text in done["left_out"])


def test_idle_times_need_every_partner(monkeypatch):
    session = Session(sp2.machine(seed=1), 4)
    sp2.all_to_all(session, 4, count=5)
    done = analysed(monkeypatch, "sp2", session, keep=without(2))
    [row] = done["all_to_all"]
    assert (row["idle_us"], row["count"]) == (None, 5)
    assert any("idle times of node 0 among 4 nodes are not known" in text for text in done["warnings"])
