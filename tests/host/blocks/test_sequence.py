"""Numbers that only rise, against a plain list of those that came."""

import random

import pytest
from hypermon.host.blocks.sequence import Sequence


@pytest.mark.parametrize("first", [0, 5, 2**31, 2**32 - 1, 2**32 - 40])
def test_as_a_list_of_numbers_says(first):
    rng = random.Random(first)
    sequence, came, skipped, newest = Sequence(), set(), set(), None
    for _ in range(3000):
        at = first if newest is None else max(newest + rng.choice([1, 1, 1, 1, 2, 3, 0, -1, -5, -40]), first - 9, 0)
        number, blocks = at % 2**32, rng.choice([1, 1, 7])
        ahead = sequence.ahead(number)
        if newest is None or at > newest:
            assert ahead == (0 if newest is None else at - newest - 1)
            assert (sequence.next == number) == (ahead == 0 and newest is not None)
            if newest is not None:
                skipped |= set(range(newest + 1, at))
            sequence.take(number, blocks)
            came |= set(range(at, at + blocks))
            newest = at + blocks - 1
            assert (sequence.due, sequence.next) == (newest + 1, (newest + 1) % 2**32)
        else:
            assert ahead == at - newest - 1
            if newest - at < 200:   # of old gaps it is forgotten
                assert sequence.missed(number) == (at in skipped or at < first)
    assert len(came) > 3000
    assert len(skipped) > 300


def test_memory_does_not_grow():
    sequence = Sequence()
    for number in range(0, 10_000, 2):
        sequence.take(number)
    assert len(sequence._gaps) == 256
    assert sequence.missed(9_997)
    assert not sequence.missed(1)


def test_half_of_all_numbers_is_ahead():
    sequence = Sequence(10)
    assert (sequence.ahead(10 + 2**31 - 1), sequence.ahead((10 + 2**31) % 2**32)) == (2**31 - 1, -2**31)
    assert (Sequence().ahead(7), Sequence(2**32 + 3).ahead(2), Sequence(2**32 + 3).ahead(3)) == (0, -1, 0)
