"""Items of several nibbles for tests: made up, and what is to be read of them."""

from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes

#: Clocks that an item waits for its next nibble, in runs made up here.
TIMEOUT = 100_000


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


def hold_of(board):
    """The windows by which an item can be late, at most: 31 time-outs and a millisecond, and one for rounding."""
    window = board.window.clocks(board.clock_hz)
    return (31 * TIMEOUT + board.clock_hz // 1000 + window - 1) // window + 1


def emitted(rng, board, modes, count, *, late=0.3, delay=None, gap=2000):
    """Items in the order in which a board sends them: by window, but some longer ones up to ``delay`` later."""
    delay = hold_of(board) - 1 if delay is None else delay
    window, items = 10, {}
    for _ in range(count):
        window += rng.choice([0, 1, 1, rng.randint(1, gap)])
        node = rng.randrange(board.nodes)
        items.setdefault((window, node), made_up_item(rng, window, node, modes))
    when = {}
    for item in items.values():
        waits = modes[item.node] is not ItemMode.NIBBLE and rng.random() < late
        when[item.window, item.node] = item.window + (rng.randint(1, delay) if waits else 0), item.node, waits
    return sorted(items.values(), key=lambda item: when[item.window, item.node])


def in_blocks(rng, items, modes, most=40):
    """Cuts them into blocks as a board must, and anywhere else."""
    blocks, room = [], 0
    before = (-1, -1)
    for item in items:
        regular = before < item[:2] and item.window - before[0] < 1 << 21
        far = not -1 << 20 <= before[0] - item.window < 1 << 20 or modes[item.node] is ItemMode.NIBBLE
        if not room or (not regular and far):
            blocks.append([])
            room, regular = rng.randint(1, most), True
        blocks[-1].append(item._replace(late=not regular))
        if regular:
            before = item[:2]
        room -= 1
    return blocks


def play(rng, board, modes, blocks, censuses=0.2, losses=0.0):
    """START, the blocks, among them censuses and losses, STOP."""
    board.start()
    newest = 0
    for block in blocks:
        board.items(block, modes)
        newest = max(newest, *(item.window for item in block))
        if rng.random() < losses:
            board.loss([(rng.randrange(board.nodes), rng.randint(1, 99), newest - 5, newest)])
        if rng.random() < censuses:
            board.census(time=newest)
    return board.stop(newest + 10)
