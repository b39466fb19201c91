"""Stimulus from a value change dump (VCD, IEEE 1364 section 18): scalars, bits of vectors, any timescale.

The levels at the file's first time are levels, not edges. A channel without a value there is 0. Of the nine values of
VHDL, ``L`` and ``H`` are the levels 0 and 1. All other values, such as ``x``, ``z`` and ``U``, are not levels: the
previous level holds, and a channel that begins with them has the level of its first known value. The first known level
of such a strobe is therefore no edge (:attr:`.Track.unknown`). A strobe that becomes unknown later keeps its level, and
is counted (:attr:`.Track.lapses`). While a dump was off, between ``$dumpoff`` and ``$dumpon``, changes are missing; a
note reports that.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypermon.host.errors import InputError
from hypermon.host.text.numbers import counted, whole
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.picoseconds import LIMIT_PS
from hypermon.sim.stimulus.port_mapping import Mapping, option_text
from hypermon.sim.stimulus.rows import Track
from hypermon.sim.stimulus.samples import Port, Samples, Targets

__all__ = ["channels_of_vcd", "read_vcd"]

#: Femtoseconds per time unit.
_UNITS = {"s": 10**15, "ms": 10**12, "us": 10**9, "ns": 10**6, "ps": 10**3, "fs": 1}
#: Types of variables that are not bits.
_NOT_BITS = ("real", "realtime", "string", "event")
#: Values of a bit: those of Verilog, and the nine of VHDL.
_DIGITS = frozenset("01xXzZuUwWlLhH-")
#: The weak levels of VHDL.
_WEAK = str.maketrans("lLhH", "0011")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Token = tuple[int, str]


@dataclass(frozen=True)
class _Variable:
    """A declared variable: code, bits, number of its leftmost and rightmost bit, full name."""

    code: str
    size: int
    left: int
    right: int
    name: str
    kind: str

    def place(self, bit: int) -> int | None:
        """Position of a numbered bit in a value, counted from its right end; None if there is no such bit."""
        place = bit - self.right if self.left >= self.right else self.right - bit
        return place if 0 <= place < self.size else None


class _Dump:
    """An open dump: its declarations are read, its changes follow."""

    def __init__(self, path: str):
        self.path = path
        self.line = 1
        self.scale: int | None = None
        self.variables: list[_Variable] = []
        #: Some name is not UTF-8.
        self.latin = False

    def wrong(self, line: int | None, reason: str) -> InputError:
        return InputError(self.path, line, reason)

    def declarations(self, tokens: Iterator[Token]) -> None:
        """Reads up to ``$enddefinitions``."""
        scope: list[str] = []
        for line, token in tokens:
            if not token.startswith("$"):
                raise self.wrong(line, f"not a value change dump: {token[:40]!r} before $enddefinitions")
            words: list[str] = []
            for _, word in tokens:
                if word == "$end":
                    break
                words.append(word)
            else:
                raise self.wrong(line, f"{token} has no $end")
            if token == "$enddefinitions":
                return
            if token == "$scope":
                scope.append(self._name(words[1:]))
            elif token == "$upscope":
                if scope:
                    scope.pop()
            elif token == "$timescale":
                scale = self._timescale(line, "".join(words))
                if self.scale not in (None, scale):
                    raise self.wrong(line, f"a second timescale, {' '.join(words)}, which differs from the first")
                self.scale = scale
            elif token == "$var":
                self.variables.append(self._variable(line, scope, words))
        raise self.wrong(None, "not a value change dump: it has no $enddefinitions")

    def _timescale(self, line: int, text: str) -> int:
        match = re.fullmatch(r"([0-9]+)([munpf]?s)", text)
        if match is None or whole(match[1]) == 0:
            raise self.wrong(line, f"{text!r:.60} is not a timescale")
        return whole(match[1]) * _UNITS[match[2]]

    def _variable(self, line: int, scope: list[str], words: list[str]) -> _Variable:
        if len(words) < 4 or not re.fullmatch(r"[0-9]+", words[1]):
            raise self.wrong(line, "$var needs type, size, code and name")
        kind, size, code = words[0], whole(words[1]), words[2]
        name = re.sub(r" (?=\[[^ ]*$)", "", self._name(words[3:]).removeprefix("\\"))
        left, right = size - 1, 0
        if match := re.fullmatch(r"(.+)\[(-?[0-9]+):(-?[0-9]+)\]", name):
            name, left, right = match[1], whole(match[2]), whole(match[3])
        return _Variable(code, size, left, right, ".".join([*scope, name]), kind)

    def _name(self, words: list[str]) -> str:
        """The name that consists of these words: UTF-8, else Latin-1."""
        name = " ".join(words)
        try:
            return name.encode("latin-1").decode()
        except UnicodeDecodeError:
            self.latin = True
            return name

    def bit(self, channel: str) -> tuple[str, int]:
        """Code and position of the one bit that a channel's name refers to: a variable's full name or, if there is no
        such variable, the end of its path, with ``[N]`` for a bit of a vector. ``@N`` selects the Nth of several, in
        the order of the file.
        """
        found, wide = self._found(channel)
        if not found and wide is None and (match := re.fullmatch(r"(.+)@([0-9]+)", channel)):
            several = list(self._found(match[1])[0])
            if 1 <= whole(match[2]) <= len(several):
                return several[whole(match[2]) - 1]
        if len(found) == 1:
            return next(iter(found))
        name = option_text(channel)
        if found:
            names = sorted(map(option_text, set(found.values())))
            if len(names) == 1:
                names = [f"{name}@{number}" for number in range(1, len(found) + 1)]
            raise self.wrong(None, f"channel {name} may be {' or '.join(names)}")
        if wide is not None:
            raise self.wrong(None, f"channel {name} has {wide.size} bits: name one, such as {name}[{wide.right}]")
        raise self.wrong(None, f"unknown channel {name}; there are {', '.join(self.names()) or 'none'}")

    def _found(self, channel: str) -> tuple[dict[tuple[str, int], str], _Variable | None]:
        """The bits that a name may refer to, by code and position, with their variables' names; a vector of that name.
        """
        match = re.fullmatch(r"(.+)\[(-?[0-9]+)\]", channel)
        # Whether the full name was given, the variable, and the position of the bit; None: none was given.
        found: list[tuple[bool, _Variable, int | None]] = []
        for variable in self.variables:
            if variable.kind in _NOT_BITS:
                continue
            if _ends(variable.name, channel):
                found.append((variable.name == channel, variable, 0 if variable.size == 1 else None))
            elif match and _ends(variable.name, match[1]):
                place = variable.place(whole(match[2]))
                if place is not None:
                    found.append((variable.name == match[1], variable, place))
        bits: dict[tuple[str, int], str] = {}
        wide = None
        for _, variable, position in [one for one in found if one[0]] or found:
            if position is None:
                wide = variable
            else:
                bits.setdefault((variable.code, position), variable.name)
        return bits, wide

    def names(self) -> list[str]:
        """Names of the bits and vectors, as they may be mapped."""
        return [option_text(v.name if v.size == 1 else f"{v.name}[{v.left}:{v.right}]")
                for v in self.variables if v.kind not in _NOT_BITS]


def _ends(name: str, channel: str) -> bool:
    return name == channel or name.endswith("." + channel)


def _tokens(source: InputFile) -> Iterator[Token]:
    """Words of the file with their line numbers, as Latin-1."""
    with source.opened() as lines:
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            # Some bytes of UTF-8 would be blanks in Latin-1.
            for word in text.decode("ascii").split() if text.isascii() else _words(text):
                yield number, word


def _words(line: bytes) -> list[str]:
    return [word.decode("latin-1") for word in line.split()]


def channels_of_vcd(source: InputFile) -> list[str]:
    """Names of the channels; errors as :func:`read_vcd`."""
    dump = _Dump(source.name)
    dump.declarations(_tokens(source))
    return dump.names()


def read_vcd(source: InputFile, mappings: Sequence[Mapping]) -> list[Track]:
    """Reads the mapped channels; times finer than a picosecond are rounded up.

    Raises
    ------
    InputError
        with the line, if the file is not a value change dump, has no timescale, two of them or no such channel, its
        times decrease or are beyond 2^63 ps, a mapped variable has a value that does not fit, or a comment does not
        end.
    """
    tokens = _tokens(source)
    dump = _Dump(source.name)
    dump.declarations(tokens)
    if dump.scale is None:
        raise dump.wrong(None, "it has no $timescale; add it to the beginning, such as: $timescale 1 ns $end")
    targets: dict[str, Targets] = {v.code: [] for v in dump.variables}
    ports = [Port(1 << len(mapping.channels) - 1) for mapping in mappings]
    for port, mapping in zip(ports, mappings, strict=True):
        for i, channel in enumerate(mapping.channels):
            code, place = dump.bit(channel)
            targets[code].append((port, 1 << i, place))
    off = _changes(dump, tokens, targets, ports)
    notes = [f"{source.name}: names that are not UTF-8 were read as Latin-1"] * dump.latin
    if off:
        begin, end = (None if time is None else f"{-(-time * dump.scale // 1000):,} ps" for time in off[0])
        notes.append(f"{source.name}: changes are missing while the dump was off ($dumpoff): "
                     f"{counted(len(off), 'time')}, {'' if len(off) == 1 else 'the first '}from {begin} to "
                     f"{end or 'its end'}")
    return [port.track(dump.scale, 1000, tuple(notes)) for port in ports]


#: From when to when a dump was off, in its unit; None: to its end.
_Off = list[tuple[int, int | None]]


def _changes(dump: _Dump, tokens: Iterator[Token], targets: dict[str, Targets], ports: list[Port]) -> _Off:
    """Reads all changes after the declarations. Returns when the dump was off."""
    assert dump.scale is not None
    samples, latest = Samples(ports), (LIMIT_PS - 1) * 1000 // dump.scale
    sizes: dict[str, int] = {}
    for variable in dump.variables:
        sizes[variable.code] = max(variable.size, sizes.get(variable.code, 0))
    off: _Off = []
    since: int | None = None
    for line, token in tokens:
        head = token[0]
        if head in _DIGITS:
            # Some programs write a blank between value and code.
            code = token[1:] or next(tokens, (line, ""))[1]
            samples.value(_target(dump, targets, line, code), head.translate(_WEAK))
        elif head == "#":
            samples.move_to(_time(dump, line, token[1:], samples.now, latest))
        elif head in "bB":
            code = next(tokens, (line, ""))[1]
            concerned = _target(dump, targets, line, code)
            # PyMTL writes a second "0b".
            digits = token[1:].removeprefix("0b")
            if not digits or not _DIGITS.issuperset(digits):
                raise dump.wrong(line, f"not a value: {token!r}")
            if concerned and not _fits(digits, sizes[code]):
                raise dump.wrong(line, f"the value {token:.60} has {len(digits)} bits; its variable has {sizes[code]}")
            samples.vector(concerned, digits.translate(_WEAK))
        elif head in "rRsS":
            if _target(dump, targets, line, next(tokens, (line, ""))[1]):
                raise dump.wrong(line, f"not a value of a bit or vector: {token[:40]!r}")
        elif token in ("$comment", "$vcdclose"):
            for _, word in tokens:
                if word == "$end":
                    break
            else:
                raise dump.wrong(line, f"{token} has no $end")
        elif token == "$dumpoff":
            samples.off = True
            since = samples.now if since is None else since
        elif token == "$dumpon":
            if since is not None and since < samples.now:
                off.append((since, samples.now))
            since, samples.off = None, False
        elif token not in ("$dumpvars", "$dumpall", "$end"):
            raise dump.wrong(line, f"not a value change: {token if head == '$' else token[:40]!r}")
    samples.settle()
    return off if since is None else [*off, (since, None)]


def _fits(digits: str, size: int) -> bool:
    """Whether a vector of ``size`` bits holds a value: further digits are 0, or the unknown value of its first bit."""
    return len(digits) <= size or set(digits[:-size]) in ({"0"}, {digits[-size]} - {"1"})


def _target(dump: _Dump, targets: dict[str, Targets], line: int, code: str) -> Targets:
    """What a code affects."""
    if not code:
        raise dump.wrong(line, "the file ends within a change: it was cut short")
    try:
        return targets[code]
    except KeyError:
        raise dump.wrong(line, f"no variable has the code {code!r}") from None


def _time(dump: _Dump, line: int, digits: str, now: int, latest: int) -> int:
    """A time from ``now`` to ``latest``."""
    if not re.fullmatch(r"[0-9]+", digits):
        raise dump.wrong(line, f"time is not a number: {digits!r}")
    time = whole(digits)
    if time < now:
        raise dump.wrong(line, f"time decreases: {time} after {now}")
    if time > latest:
        raise dump.wrong(line, f"time is beyond 2^63 ps: {time}")
    return time
