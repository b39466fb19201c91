"""Converts payloads of COMPACT blocks into columns with NumPy, for machines without a C compiler.

Items have no fixed length. The beginning of an item is therefore known only when the previous item has been read.
:class:`Lanes` reads all payloads at once, one lane per payload. For every group it computes the length of an item that
would begin there, whether or not one does. The lanes then hop from item to item in lock step. All other steps process
many items at a time.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import GAP_GROUPS, GROUP_BITS, PORT_BITS, Code
from hypermon.host.blocks.compact_rows import CompactRows, Span

__all__ = ["Lanes", "decode_lanes"]

assert GROUP_BITS == 4

#: Bit of a number's group that indicates that another one follows.
_MORE = 8
#: Zero bytes after every payload, so that an item that is cut short does not reach into the next one ...
_BETWEEN = bytes(48)
#: ... which no item does: two groups of a code, a number that is too long, vector, nibbles or bytes.
_AHEAD = 96
assert 2 * len(_BETWEEN) >= _AHEAD > 2 + 9 + 8 + 2 * 32
#: Groups processed at once, so that intermediate results stay in a core's cache.
_CHUNK = 1 << 18
#: Hops of all lanes between two recordings of their positions, and number of lanes from which on lock step pays.
_HOPS, _LANES = 16, 16

_Int = npt.NDArray[np.int64]
_Byte = npt.NDArray[np.uint8]
_Bool = npt.NDArray[np.bool_]


def decode_lanes(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                 port_bits: int = PORT_BITS) -> tuple[list[CompactRows], list[Span | None], list[int]]:
    """The items of payloads of single nibbles (or bytes), the spans of the payloads, and which are not legal."""
    places = [k for k, payload in enumerate(payloads) if len(payload)]
    bad: list[int] = []
    while True:
        parts = Lanes([payloads[k] for k in places], [times[k] for k in places], nodes, port_bits)
        if not parts.bad.any():
            break
        marked = parts.bad.tolist()
        bad += [k for k, is_bad in zip(places, marked, strict=True) if is_bad]
        places = [k for k, is_bad in zip(places, marked, strict=True) if not is_bad]
    spans: list[Span | None] = [None] * len(payloads)
    for place, span in zip(places, parts.spans(), strict=True):
        spans[place] = span
    return parts.rows, spans, sorted(bad)


class Lanes:
    """Decodes payloads, none of them empty.

    Members
    -------
    bad : the payloads that are not legal; if there are any, the other members are meaningless.
    rows : all items.
    """

    def __init__(self, payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                 port_bits: int = PORT_BITS):
        self.nodes, self.times = nodes, np.array(times, np.int64)
        self.wide = 2 if nodes > 16 else 1
        #: Groups per write, and their maximum value.
        self.unit, self.most = port_bits // GROUP_BITS, (1 << port_bits) - 1
        self.data = np.frombuffer(_BETWEEN.join([*payloads, bytes(_AHEAD)]), np.uint8)
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self.ends = 2 * (np.cumsum(lengths + len(_BETWEEN)) - len(_BETWEEN))
        self.starts = self.ends - 2 * lengths
        #: Groups in which items may begin or end.
        self.size = 2 * len(self.data) - _AHEAD
        self.bad = np.zeros(len(payloads), np.bool_)
        self.rows: list[CompactRows] = []
        # For every payload: node of the first item, window and node of the last.
        self._spans = np.zeros((3, len(payloads)), np.int64)
        self._last = self._last_node = 0
        begins = self._find()
        for low in range(0, self.size, _CHUNK):
            self._take(begins, low, min(low + _CHUNK, self.size))

    def spans(self) -> list[Span]:
        columns = (self.times.tolist(), *self._spans.tolist())
        return [Span((time, first), (window, last)) for time, first, window, last in zip(*columns, strict=True)]

    def _groups(self, low: int, high: int) -> _Byte:
        """The groups, one per byte; ``low`` is even."""
        pairs = self.data[low // 2:(high + 1) // 2].astype("<u2")
        pairs |= pairs * np.uint16(16)  # NumPy multiplies small integers faster than it shifts them
        pairs &= 0x0f0f
        return pairs.view(np.uint8)

    # ------------------------------------------------------------------------- where items begin

    def _find(self) -> _Bool:
        """For every group, whether an item begins there."""
        steps = np.zeros(self.size, np.uint8)
        for low in range(0, self.size, _CHUNK // 2):
            high = min(low + _CHUNK // 2, self.size)
            self._lengths(self._groups(low, high + _AHEAD), steps[low:high])
        # An item has three groups or more: none begins in the last group, or after it.
        steps[self.ends[:, np.newaxis] + np.arange(-1, _AHEAD)] = 0
        begins = np.zeros(self.size, np.bool_)
        final = self._hop(steps, begins)
        begins[final] = False
        rest = self.ends - final
        filler = self.data[(self.ends - 1) // 2] >> 4
        self.bad |= (rest != 0) & ((rest != 1) | (filler != 0))
        return begins

    def _lengths(self, groups: _Byte, out: _Byte) -> None:
        """The length of an item that begins in a group; anything but 0 if none can begin there."""
        more = (groups >= _MORE).view(np.uint8)
        run = more[:-1] & more[1:]                 # groups in a row with bit 3 set, up to 2
        run += more[:-1]
        run = _joined(run, 2)                      # up to 4
        run = _joined(run, 4)                      # up to 8
        np.add(run[:len(out)], 1 + self.wide + self.unit, out=out)
        code = groups[:len(out)] == _MORE | Code.WINDOW
        code &= groups[1:len(out) + 1] == 0
        at = np.flatnonzero(code)
        vector = at + 3
        vector += run[at + 2]
        length = run[at + 2] + np.uint8(3 + 4 * self.wide)
        for k in range(4 * self.wide):
            length += np.uint8(self.unit) * np.bitwise_count(groups[vector + k])
        out[at] = length

    def _hop(self, steps: _Byte, begins: _Bool) -> _Int:
        """Hops from item to item in all payloads. Marks where items begin; returns where each payload's last one ends.
        """
        final = self.starts.copy()
        lanes = np.arange(len(final))
        at = final
        while len(at) >= _LANES:
            hops = np.empty((_HOPS + 1, len(at)), np.int64)
            hops[0] = at
            for here, there in pairwise(hops):
                np.add(here, steps[here], out=there)
            begins[hops[:-1].ravel()] = True
            at = hops[-1]
            going = steps[at] != 0
            if not going.all():
                final[lanes[~going]] = at[~going]
                lanes, at = lanes[going], at[going]
        # Python itself is faster than NumPy with just a few.
        for lane, begin in zip(lanes.tolist(), at.tolist(), strict=True):
            own = steps[begin:int(self.ends[lane]) + _AHEAD].tobytes()
            place, found = 0, []
            while step := own[place]:
                found.append(place)
                place += step
            begins[np.array(found, np.int64) + begin] = True
            final[lane] = begin + place
        return final

    # ------------------------------------------------------------------------ contents of items

    def _take(self, begins: _Bool, low: int, high: int) -> None:
        """The items that begin in groups ``low`` to ``high``."""
        at = np.flatnonzero(begins[low:high])
        if len(at) == 0:
            return
        groups = self._groups(low, high + _AHEAD)
        pairs = groups[1:] * np.uint8(16)
        pairs |= groups[:-1]
        words = pairs[2:].astype("<u2")
        words *= 256
        words |= pairs[:-2]  # four groups from here on
        # Every index is in range; "clip" only spares take() a look.
        word = words.take(at, mode="clip")
        number = _NUMBERS.take(word, mode="clip")
        size = number >> 12
        gap = (number & 0xfff).astype(np.int64)
        tail = words.take(at + size, mode="clip")
        if self.wide == 1:
            node = (tail & 15).astype(np.uint8)
            nibble = (tail >> 4 & self.most).astype(np.uint8)
        else:
            node = tail.astype(np.uint8)
            nibble = (tail >> 8 & self.most).astype(np.uint8)
        wrong: _Bool = node >= self.nodes
        many = odd = np.flatnonzero(number < 1 << 12)
        if len(odd):
            is_code = (word[odd] & 0xff) == _MORE | Code.WINDOW
            many, plain = odd[is_code], odd[~is_code]
            gap[plain], length, wrong[plain] = _long(words, at[plain])
            tail = words[at[plain] + length]
            node[plain] = tail & (15 if self.wide == 1 else 255)
            nibble[plain] = tail >> 4 * self.wide & self.most
            wrong[plain] |= node[plain] >= self.nodes
        if len(many) == 0:
            windows = self._place(at, low, high, gap, node, node, wrong)
            self.rows.append(CompactRows(windows, node, nibble))
            return
        gap[many], length, wrong[many] = _long(words, at[many] + 2)
        place = at[many] + 2 + length
        vector = words[place].astype(np.int64)
        if self.wide == 2:
            vector |= words[place + 4].astype(np.int64) << 16
        place += 4 * self.wide
        wrong[many] |= (vector == 0) | (vector >> self.nodes != 0)
        first, last = node.copy(), node.copy()
        first[many] = np.bitwise_count((vector & -vector) - 1)
        last[many] = np.frexp(vector.astype(np.float64))[1] - 1
        windows = self._place(at, low, high, gap, first, last, wrong)
        counts = np.ones(len(at), np.int64)
        counts[many] = np.bitwise_count(vector)
        bits = np.unpackbits(vector.astype("<u4").view(np.uint8), bitorder="little")
        nodes = (np.flatnonzero(bits.view(np.bool_)) & 31).astype(np.uint8)
        # The nibbles after a vector are consecutive: that of the item's first event, then one group further for each.
        ends = np.cumsum(counts)
        where = place - self.unit * (ends - counts)[many]
        nibbles = np.repeat(where, counts[many])
        if len(many) == len(at):
            nibbles += self.unit * np.arange(len(nibbles))
            self.rows.append(CompactRows(np.repeat(windows, counts), nodes, self._writes(groups, nibbles)))
            return
        single = np.ones(len(at), np.bool_)
        single[many] = False
        inside = np.flatnonzero(np.repeat(~single, counts))
        nibbles += self.unit * inside
        every = np.empty((2, int(ends[-1])), np.uint8)
        every[0, inside], every[1, inside] = nodes, self._writes(groups, nibbles)
        alone = (ends - 1)[single]
        every[0, alone], every[1, alone] = node[single], nibble[single]
        self.rows.append(CompactRows(np.repeat(windows, counts), every[0], every[1]))

    def _writes(self, groups: _Byte, at: _Int) -> _Byte:
        """The nibbles, or bytes, at the given groups."""
        return groups[at] if self.unit == 1 else groups[at] | groups[at + 1] << np.uint8(4)

    def _place(self, at: _Int, low: int, high: int, gap: _Int, first: _Byte, last: _Byte, wrong: _Bool) -> _Int:
        """Windows of the items; errors are reported for their payloads."""
        begin, end = np.searchsorted(self.starts, (low, high)).tolist()
        heads = np.searchsorted(at, self.starts[begin:end] - low)
        wrong[heads] |= gap[heads] != 0
        before = np.empty_like(last)
        before[0] = self._last_node
        before[1:] = last[:-1]
        falls = first <= before
        falls &= gap == 0
        falls[heads] = False
        wrong |= falls
        windows = np.cumsum(gap)
        sizes = np.diff(heads, prepend=0, append=len(at))
        bases = np.empty(len(sizes), np.int64)
        bases[0] = self._last
        bases[1:] = self.times[begin:end] - windows[heads]
        windows += np.repeat(bases, sizes)
        self._last, self._last_node = int(windows[-1]), int(last[-1])
        tails = np.append(heads, len(at))[sizes > 0] - 1
        own = np.arange(begin - 1, end)[sizes > 0]
        self._spans[0, begin:end] = first[heads]
        self._spans[1, own], self._spans[2, own] = windows[tails], last[tails]
        if wrong.any():
            self.bad[np.searchsorted(self.starts, at[wrong] + low, "right") - 1] = True
        return windows


def _joined(run: _Byte, most: int) -> _Byte:
    """Lengths of runs up to twice ``most``, from those up to ``most``."""
    joined: _Byte = (run[:-most] == most).view(np.uint8)
    joined *= run[most:]
    joined += run[:-most]
    return joined


def _number_table() -> npt.NDArray[np.uint16]:
    """For four groups: the number they begin with in bits 11..0, its groups in bits 15..12; 0 groups if they begin with
    no number, or with one that continues.
    """
    word = np.arange(1 << 16)
    table = np.zeros(1 << 16, np.uint16)
    value = word & 7
    going = word & _MORE != 0
    table[~going] = value[~going] | 1 << 12
    for size in range(2, 5):
        group = word >> 4 * (size - 1) & 15
        value |= (group & 7) << 3 * (size - 1)
        ends = going & (group < _MORE) & (group > 0)
        table[ends] = value[ends] | size << 12
        going &= group >= _MORE
    return table


_NUMBERS = _number_table()


def _long(words: npt.NDArray[np.uint16], at: _Int) -> tuple[_Int, _Int, _Bool]:
    """Numbers of any length: value, groups, and which are invalid."""
    low, high = words[at], _NUMBERS[words[at + 4]]
    short = _NUMBERS[low]
    goes_on = (low & 0x8888) == 0x8888
    value = np.where(goes_on, _TWELVE[low] | (high & 0xfff).astype(np.int64) << 12, short & 0xfff)
    size = np.where(goes_on, 4 + (high >> 12), short >> 12).astype(np.int64)
    wrong = np.where(goes_on, (high & 0xfff == 0) | (high >> 12 == 0) | (high >> 12 > GAP_GROUPS - 4), short == 0)
    return value.astype(np.int64), size, wrong


def _twelve_table() -> _Int:
    """The twelve bits of a number in four groups."""
    word = np.arange(1 << 16)
    value = word & 7
    for k in range(1, 4):
        value |= (word >> 4 * k & 7) << 3 * k
    return value


_TWELVE = _twelve_table()
