"""The host's encoder and the one of the tests' board, which were written apart, write the same bytes."""

import random
from itertools import pairwise

import pytest

from tests.host.compact_encode import compact_payload, items_payload
from tests.host.compact_write import encode, encode_items
from tests.host.items import made_up_items, made_up_modes


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("nodes", [1, 3, 16, 17, 32])
def test_items_of_any_mode(nodes, bits):
    rng = random.Random(f"{nodes} {bits}")
    for _ in range(60):
        modes = made_up_modes(rng, nodes)
        items = made_up_items(rng, rng.randint(1, 12), nodes, modes, full=rng.random(), bits=bits)
        assert items_payload(items, modes.words, modes.events, nodes, bits) == encode_items(items, modes, nodes, bits)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("nodes", [1, 3, 16, 17, 32])
def test_single_writes(nodes, bits):
    rng = random.Random(f"{nodes} {bits}")
    for _ in range(60):
        window, items = rng.getrandbits(40), []
        for _ in range(rng.randint(1, 30)):
            items += [(window, node, rng.getrandbits(bits)) for node in range(nodes) if rng.random() < rng.random()]
            window += rng.choice([1, 7, 8, 100, 8**7 - 1])
        steps = [b - a for (a, *_), (b, *_) in pairwise(items)]
        if items and all(step < 8**7 for step in steps):
            assert compact_payload(items, nodes, bits) == encode(items, nodes, bits)
