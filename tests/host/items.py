"""Items of several nibbles for tests: made up, and what is to be read of them."""

from hypermon.host.compact import LongItem
from hypermon.host.modes import ItemMode, ItemModes


def made_up_modes(rng, nodes):
    return ItemModes.of([rng.choice(list(ItemMode)) for _ in range(nodes)])


def made_up_item(rng, window, node, modes, *, late=False, aborts=0.1, bits=4):
    """A random item of a node."""
    first = rng.randint(1, 15) if modes[node] is ItemMode.EVENT else rng.randrange(16)
    first |= rng.randrange(1 << bits) & ~15
    nibbles = bytearray([first, *(rng.randrange(1 << bits) for _ in range(modes.writes(node, first, bits) - 1))])
    filler = 0
    if len(nibbles) > 1 and rng.random() < aborts:
        filler = rng.randint(1, len(nibbles) - 1)
        nibbles[len(nibbles) - filler:] = bytes(filler)
    return LongItem(window, node, bytes(nibbles), filler, late)


def made_up_items(rng, count, nodes, modes, *, full=0.2, late=0.1, aborts=0.1, window=None, bits=4,
                  gaps=(1, 7, 8, 600, 40_000, 2**21 - 1)):
    """Items of about so many windows, in an order in which a board can write them."""
    longer = [node for node in range(nodes) if modes.longer >> node & 1]
    window = rng.randrange(2**21, 1 << 40) if window is None else window
    items = []
    for _ in range(count):
        size = rng.randint(1, nodes) if rng.random() < full else 1
        for node in sorted(rng.sample(range(nodes), size)):
            items.append(made_up_item(rng, window, node, modes, aborts=aborts, bits=bits))
            while longer and rng.random() < late:
                age = rng.choice([0, 1, 300, 2**20 - 1, -1, -5, -2**20]) if rng.random() < 0.5 else rng.randrange(2000)
                items.append(made_up_item(rng, max(window - age, 0), rng.choice(longer), modes, late=True,
                                          aborts=aborts, bits=bits))
        window += rng.randint(1, rng.choice(gaps))
    return items


def meaning(item, modes, bits=4):
    """Mode, value (None: not even the id came), payload, aborted."""
    nibbles, mode = item.nibbles, modes[item.node]
    if mode is not ItemMode.EVENT:
        return mode, sum(nibble << bits * k for k, nibble in enumerate(nibbles)), b"", item.filler > 0
    came = nibbles[1:len(nibbles) - item.filler]
    values = list(came) if bits == 8 else [
        low | high << 4 for low, high in zip(came[::2], came[1::2], strict=False)]
    return mode, values[0] if values else None, bytes(values[1:]), item.filler > 0


def of_rows(parts):
    """Decoded rows as ``(window, node, mode, value, payload, aborted)``."""
    found = []
    for rows in parts:
        begin = 0
        columns = (rows.windows, rows.node, rows.value, rows.state, rows.ends)
        for window, node, value, state, end in zip(*(column.tolist() for column in columns), strict=True):
            mode = rows.modes[node]
            found.append((window, node, mode, None if state == 2 else value, rows.data[begin:end].tobytes(), state > 0))
            begin = end
        assert begin == len(rows.data)
    return found


def as_rows(items, modes, bits=4):
    """The same of items."""
    return [(item.window, item.node, *meaning(item, modes, bits)) for item in items]
