"""Whatever happens to a stream: every delivered event is a true one, or is left out; what is missing is said, counted
and placed."""

import random
from collections import Counter as Tally

import pytest

from tests.host.corruption import KINDS, RUNS, corrupted, decoded, faults_of, made


def trial(name, kind, seed, count):
    """What is wrong in so many corruptions of a run."""
    rng = random.Random(f"{name} {kind} {seed}")
    stream = made(name, seed)
    whole = decoded(stream, stream.data, rng)
    assert whole.summary["accounted"]
    wrong = Tally()
    for number in range(count):
        data = corrupted(kind, stream, rng)
        if data != stream.data:
            for fault in faults_of(stream, whole, decoded(stream, data, rng), kind):
                wrong[fault] += 1
                print(f"{name}, {kind}, seed {seed}, number {number}: {fault}")
    return wrong


@pytest.mark.parametrize("name", RUNS)
def test_runs_are_whole(name):
    stream = made(name, 1)
    whole = decoded(stream, stream.data, random.Random(1))
    assert not faults_of(stream, whole, whole)
    assert whole.summary["lost"] > 0
    assert len(whole.events) > 100
    assert len(stream.blocks) > 30


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("kind", KINDS)
def test_corruption(name, kind):
    assert not trial(name, kind, 1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("kind", KINDS)
def test_much_corruption(name, kind):
    """288 each: 44,064 in all."""
    for seed in range(2, 14):
        assert not trial(name, kind, seed, 24)
