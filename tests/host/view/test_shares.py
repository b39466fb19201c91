"""States that are too many, in shares of columns; messages and counters that are too many."""

import json
import random
import struct

import numpy as np
import pytest
from hypermon.host.view import shares, tables
from hypermon.host.view.bins import Bins
from hypermon.host.view.shares import Gathered, States, length_for, occupied

from tests.host.external.browsing import browser_page, served
from tests.host.telling import made_up
from tests.host.web.test_timeline_page import calm, picture, said_of
from tests.host.web.test_timeline_tab import asked, within

FROM, TO, COLUMNS = 1000, 9000, 40


def some_states(rng, count):
    begin = np.array([rng.randrange(0, 10_000) for _ in range(count)])
    return States(np.array([rng.randrange(3) for _ in range(count)]), begin,
                  begin + np.array([rng.choice([0, 1, 30, 5000]) for _ in range(count)]))


def brute_force(states, kinds, begin, end, columns):
    found = np.zeros((kinds, columns))
    width = (end - begin) / columns
    edges = begin + np.arange(columns) * width
    for kind, first, last in zip(states.kinds, states.begin_ps, states.end_ps, strict=True):
        found[kind] += np.maximum(np.minimum(last, edges + width) - np.maximum(first, edges), 0) / width
    return found


@pytest.mark.parametrize("seed", range(3))
def test_shares(seed):
    states = some_states(random.Random(seed), 200)
    expected = brute_force(states, 3, FROM, TO, COLUMNS)
    assert occupied(states, 3, FROM, TO, COLUMNS) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_states_in_bins(seed, monkeypatch):
    """For how long states are open in each bin is exact, in whichever pieces they are added."""
    monkeypatch.setattr(shares, "_BINS", 700)
    monkeypatch.setattr(shares, "_LONG_BINS", 30)
    rng = random.Random(seed)
    states = some_states(rng, 200)
    begin, end = rng.randrange(0, 3000), rng.randrange(7000, 20_000)
    gathered = Gathered(3, begin, end)
    for part in (slice(0, 50), slice(50, None)):
        gathered.add(States(states.kinds[part], states.begin_ps[part], states.end_ps[part]))
    lengths = gathered.lengths()
    assert [len(length.values) for length in lengths] == [pytest.approx(22, abs=8), pytest.approx(525, abs=175)]
    for length in lengths:
        for number, row in enumerate(length.values):
            low = max((length.first + number) << length.shift, begin)
            high = min((length.first + number + 1) << length.shift, end)
            for kind in range(3):
                assert row[kind] == sum(max(min(last, high) - max(first, low), 0) for of, first, last in
                                        zip(states.kinds, states.begin_ps, states.end_ps, strict=True) if of == kind)


@pytest.mark.parametrize("kinds", [1, 100, 20_000])
def test_bins_have_a_bound_whatever_the_kinds(kinds):
    """The memory of a run of many states is that of a run of few."""
    for bins in Gathered(kinds, 0, 10**15).lengths():
        assert bins.values.size <= 1 << 22


def test_which_bins_a_picture_is_made_of():
    lengths = [Bins.empty(1, 0, 1000, 10), Bins.empty(1, 0, 1000, 100)]
    assert [length.bin_ps for length in lengths] == [128, 16]
    assert [length_for(lengths, width) for width in (256, 255, 16, 15)] == [lengths[0], lengths[1], lengths[1], None]
    # Before the shorter ones are read.
    assert [length_for(lengths[:1], width) for width in (256, 255)] == [lengths[0], None]
    assert length_for([], 1e9) is None


def pictured(data):
    size, = struct.unpack_from("<I", data)
    answer = json.loads(data[4:4 + size])
    rows = len(answer["spans"].get("kinds", ()))
    shares = np.frombuffer(data[4 + size + 4 * answer["numbers"]:], np.uint8)[:rows * answer["columns"]]
    return answer, shares.reshape(rows, answer["columns"])


@pytest.mark.parametrize("many", [1 << 16, 10])
def test_too_many_of_all(told, monkeypatch, many):
    """The answer of a long stretch has shares, some messages and their number, and counters, of any number of rows."""
    monkeypatch.setattr(tables, "MANY", many)
    story = told(made_up(random.Random(8), 20_000))
    states, messages = story.states().to_pylist(), story.messages().to_pylist()
    counters = story.counters().to_pylist()
    begin, end = 10**9, 18 * 10**9
    names = sorted({row["name"] for row in states})
    rows = [(row["node"] * len(names) + names.index(row["name"]), row["begin_ps"],
             row["end_ps"] or row["lost_ps"] or 10**12) for row in states]
    expected = brute_force(States(*map(np.array, zip(*rows, strict=True))), 4 * len(names), begin, end, 100)

    async def work(client):
        answer, shares = pictured(await asked(client, "/timeline/picture", from_=begin, to=end, columns=100, first=0,
                                                lanes=64))
        assert answer["names"] == names
        for (node, name), row in zip(answer["spans"]["kinds"], shares, strict=True):
            wanted = np.minimum(expected[node * len(names) + name], 1)
            assert row / 255 == pytest.approx(wanted, abs=0.003 if many > 10 else 0.02)
            assert ((row > 0) >= (wanted > 1e-6)).all()      # nothing that is there is left out
        assert {(node, name) for node, name in answer["spans"]["kinds"]} == \
            {divmod(k, len(names)) for k in np.flatnonzero(expected.any(axis=1)).tolist()}
        there = [row for row in messages if row["latency_ps"] is not None and row["sent_ps"] < end
                 and row["received_ps"] >= begin]
        drawn = {(row[1], row[2], row[3] + begin, row[4] + begin) for row in answer["arrows"]["rows"]}
        assert drawn <= {(row["sender"], row["receiver"], row["sent_ps"], row["received_ps"]) for row in there}
        assert 100 < len(answer["arrows"]["rows"]) <= 600
        total = len(answer["arrows"]["rows"]) + answer["arrows"]["out"]
        assert total == pytest.approx(len(there), rel=0 if many > 10 else 0.01)
        part, _ = pictured(await asked(client, "/timeline/picture", from_=begin, to=end, columns=100, first=0, lanes=64,
                                       nodes="0-2"))
        between = [row for row in there if row["sender"] < 3 and row["receiver"] < 3]
        assert {(row[1], row[2]) for row in part["arrows"]["rows"]} == {(row["sender"], row["receiver"])
                                                                        for row in between}
        assert len(part["arrows"]["rows"]) + part["arrows"]["out"] == pytest.approx(
            len(between), rel=0 if many > 10 else 0.01)
        assert 600 < len(between) < len(there)
        loads = [row["value"] for row in counters if row["counter"] == "load" and row["node"] == 1
                 and begin <= row["time_ps"] < end]
        lines = [row for row in answer["counters"]["load"] if row[0] == 1]
        assert (lines[0][1] < 0, lines[-1][1] >= end - begin) == (True, True)       # the line goes on to both sides
        lines = lines[1:-1]
        assert len(lines) <= 25 + 1
        if many > 10:
            assert min(row[2] for row in lines) == min(loads)
            assert max(row[3] for row in lines) == max(loads)
            assert lines[-1][4] == loads[-1]
        assert set(answer["counters"]) == {"load", "job"}

    within(story, work)


def test_zoomed_out(told):
    """In a browser: each lane has colour where states are, what is left out is counted, and a card has the shares."""
    story = told([(*row[:4], False) for row in made_up(random.Random(8), 20_000)])
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        for _ in range(100):
            calm(page, 100)
            said = picture(page)[2]
            if said["states"] == "shares":
                break
        assert (said["states"], said["messages"]) == ("shares", "600")
        note = page.inner_text("#note")
        assert "mean colour of each column" in note
        assert " messages of " in note
        covered = page.evaluate(_COVERED)
        assert min(covered) > 0.9, covered
        box = page.locator("#lanes").bounding_box()
        page.mouse.move(box["x"] + 600, box["y"] + 36)
        said = page.inner_text("#card")
        assert said.startswith("node 0: states")
        assert "phase" in said
        assert "%" in said


#: The share of columns that have a colour just below the upper edge of each of four lanes.
_COVERED = """() => {
  const canvas = document.getElementById('lanes'), pen = canvas.getContext('2d'), tall = (canvas.height - 33) / 4;
  return [0, 1, 2, 3].map((lane) => {
    const { data } = pen.getImageData(120, Math.round(32 + lane * tall) + 4, canvas.width - 160, 1);
    let n = 0;
    for (let k = 0; k < data.length; k += 4) {
      const rgb = data.slice(k, k + 3);
      n += data[k + 3] > 0 && Math.max(...rgb) - Math.min(...rgb) > 15;
    }
    return n / (data.length / 4); }); }"""
