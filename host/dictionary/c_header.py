"""An event dictionary as a C header: ids, named values, and a function for every event that writes it.

The header needs ``hypermon.h`` of the node library and C99 (or C++). It runs on any node: it depends neither on padding
nor on a byte order.
"""

import re
from collections.abc import Iterator

from hypermon.host.dictionary.dictionary import PAYLOAD_MAX, Dictionary, EventKind, Field
from hypermon.host.errors import HypermonError

__all__ = ["c_header"]

_REAL = {32: "float", 64: "double"}

#: Words that cannot be a parameter: of C, of C++, and macros of the headers that hypermon.h includes.
_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield
    compl concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export false friend
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
    requires static_assert static_cast template this thread_local throw true try typeid typename typeof using virtual
    wchar_t xor xor_eq
    errno stdin stdout stderr linux unix i386 port payload length"""
_TAKEN = frozenset(_WORDS.split())
#: Types and macros of stdint.h, stddef.h and limits.h.
_STANDARD = re.compile(r"(u?int(_(least|fast))?(8|16|32|64)|u?int(ptr|max)|size|ssize|ptrdiff|wchar|max_align)_t|"
                       r"(U?INT(_(LEAST|FAST))?(8|16|32|64|PTR|MAX)|U?(CHAR|SHRT|INT|LONG|LLONG)|SCHAR|S?SIZE|PTRDIFF|"
                       r"WCHAR|WINT|SIG_ATOMIC)_(MIN|MAX|WIDTH|C|BIT)|CHAR_BIT|MB_LEN_MAX")
#: Characters that change the direction of the text after them; compilers warn of them.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def c_header(dictionary: Dictionary, source: str, prefix: str) -> str:
    """The text of the header.

    Parameters
    ----------
    source : name of the dictionary's file, for the head.
    prefix : of all names in it: ``life`` makes ``LIFE_SEND`` and ``life_send()``.

    Raises
    ------
    HypermonError
        if the prefix is not an identifier or is the node library's, or if two things would have the same name.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", prefix) or prefix.lower() == "hm":
        raise HypermonError(f"{source}: names in C cannot begin with {prefix + '_'!r}; choose another --prefix")
    return _Header(dictionary, source, prefix.lower()).text()


class _Header:
    def __init__(self, dictionary: Dictionary, source: str, prefix: str):
        self._dictionary, self._source, self._prefix = dictionary, source, prefix
        self._upper = prefix.upper()
        self._names: dict[str, str] = {}

    def text(self) -> str:
        guard = self._take(f"{self._upper}_EVENTS_H", "the header itself")
        return "\n".join([
            "/*",
            f" * The events of {_plain(self._source)}, made by `hypermon dict --c-header`. Change that, not this.",
            " *",
            f" * {self._prefix}_NAME(port, ...) writes an event. Returns 0; or -1, if a text or bytes do not fit, and",
            " * nothing is written.",
            f" * {self._prefix}_NAME_pack(payload, ...) only makes its payload, {PAYLOAD_MAX} bytes at most. Returns",
            " * their number, or -1.",
            " */",
            f"#ifndef {guard}", f"#define {guard}", "", '#include "hypermon.h"', *self._ids(), *self._values(),
            *(line for kind in self._dictionary.events for line in self._functions(kind)),
            "", f"#endif /* {guard} */", ""])

    def _take(self, name: str, what: str) -> str:
        """Reserves a name for one thing only."""
        if name in _TAKEN or _STANDARD.fullmatch(name):
            raise HypermonError(f"{self._source}: in C {name} would be {what}, but has a meaning already; choose "
                                "another --prefix")
        other = self._names.setdefault(name, what)
        if other != what:
            raise HypermonError(f"{self._source}: in C {name} would be {other} and {what}")
        return name

    def _ids(self) -> Iterator[str]:
        if not self._dictionary.events:
            return
        yield ""
        yield f"enum {self._prefix}_event {{"
        names = [self._take(f"{self._upper}_{kind.name.upper()}", f"the id of {kind.name}")
                 for kind in self._dictionary.events]
        width = max(map(len, names)) + 8
        for kind, name in zip(self._dictionary.events, names, strict=True):
            comma = "," if kind is not self._dictionary.events[-1] else ""
            what = ", ".join(f"{field.name} {field.type}" for field in kind.fields) or "nothing"
            what += f": {kind.doc}" if kind.doc else ""
            yield f"    {f'{name} = {kind.id:#04x}{comma}':<{width}}  /* {_plain(what)} */"
        yield "};"

    def _values(self) -> Iterator[str]:
        users: dict[str, set[tuple[tuple[str, int], ...]]] = {}
        for kind in self._dictionary.events:
            for field in kind.fields:
                if field.values:
                    users.setdefault(field.name.upper(), set()).add(field.values)
        done: set[str] = set()
        for kind in self._dictionary.events:
            for field in kind.fields:
                shared = len(users.get(field.name.upper(), ())) == 1
                begin = f"{self._upper}_" + ("" if shared else f"{kind.name.upper()}_") + field.name.upper()
                if not field.values or begin in done:
                    continue
                done.add(begin)
                yield ""
                yield f"/* {_plain(f'{field.name} of {kind.name}' + (field.doc and f': {field.doc}'))} */"
                for value, number in field.values:
                    name = self._take(f"{begin}_{value.upper()}", f"{value} of {kind.name}.{field.name}")
                    yield f"#define {name} {_literal(number, field.storage)}"

    def _functions(self, kind: EventKind) -> Iterator[str]:
        name = self._take(f"{self._prefix}_{kind.name.lower()}", f"the function of {kind.name}")
        pack = self._take(f"{name}_pack", f"the packing of {kind.name}")
        event = f"{self._upper}_{kind.name.upper()}"
        arguments = _arguments(kind, {name, pack})
        declared = "".join(f", {kind_} {name}" for kind_, name in arguments).replace("* ", "*")
        passed = "".join(f", {name}" for _, name in arguments)
        yield ""
        if kind.doc or any(field.doc for field in kind.fields):
            docs = [kind.doc, *(f"{field.name}: {field.doc}" for field in kind.fields if field.doc)]
            yield f"/* {_plain(' '.join(filter(None, docs)))} */"
        if not kind.fields:
            yield f"static inline int {name}(hm_port *port)"
            yield from ("{", f"    return hm_event(port, {event}, NULL, 0);", "}")
            return
        yield f"static inline int {pack}(unsigned char *payload{declared})"
        yield "{"
        yield from (f"    {line}" for line in _packing(kind, {name, pack}))
        yield "}"
        yield ""
        yield f"static inline int {name}(hm_port *port{declared})"
        yield "{"
        yield "    unsigned char payload[HM_PAYLOAD_MAX];"
        yield f"    const int length = {pack}(payload{passed});"
        yield f"    return length < 0 ? -1 : hm_event(port, {event}, payload, (size_t)length);"
        yield "}"


def _plain(text: str) -> str:
    """Text that neither ends the comment it is in, nor begins one, nor turns the direction of what follows."""
    return _DIRECTIONS.sub("", text).replace("*/", "* /").replace("/*", "/ *")


def _literal(number: int, storage: int) -> str:
    if storage <= 16:
        return f"{number}u" if number >= 0 else f"({number})"
    if number == -2**(storage - 1):
        return f"(-INT{storage}_C({-number - 1}) - 1)"
    return f"UINT{storage}_C({number})" if number >= 0 else f"(-INT{storage}_C({-number}))"


def _parameters(kind: EventKind, functions: set[str]) -> tuple[list[str], str]:
    """A parameter name for every field, and one for the number of bytes of the last field.

    They are the field's own, and that with ``_length``, unless the name has a meaning in C or in the generated code, or
    is that of another parameter.
    """
    names = {field.name for field in kind.fields}

    def other(name: str) -> str:
        while name in names or name in functions:
            name += "_"
        names.add(name)
        return name

    result = []
    for field in kind.fields:
        name = field.name
        if (name in _TAKEN or name in functions or _STANDARD.fullmatch(name) or name.startswith(("hm_", "_"))
                or (len(name) > 1 and name == name.upper())):
            name = other(f"{name.lower()}_value")
        result.append(name)
    return result, other(f"{result[-1]}_length") if result else ""


def _arguments(kind: EventKind, functions: set[str]) -> list[tuple[str, str]]:
    """Types and names of its function's parameters."""
    result = []
    names, length = _parameters(kind, functions)
    for field, name in zip(kind.fields, names, strict=True):
        if field.kind in "ui":
            result.append((f"{'u' * (field.kind == 'u')}int{field.storage}_t", name))
        elif field.kind == "f":
            result.append((_REAL[field.storage], name))
        else:
            result.append(("const char *" if field.kind == "char" else "const void *", name))
            if field.kind == "bytes" and field.bits is None:
                result.append(("size_t", length))
    return result


def _packing(kind: EventKind, functions: set[str]) -> Iterator[str]:
    """The body: numbers into bytes, then text and bytes, then their number."""
    names, length = _parameters(kind, functions)
    fields = list(zip(kind.fields, names, strict=True))
    if any(field.kind in ("char", "bytes") for field in kind.fields):
        yield "size_t hm_i;"
    for field, _ in fields:
        if field.kind == "f":
            yield f"union {{ {_REAL[field.storage]} real; uint{field.bits}_t bits; }} hm_{field.offset};"
    parts: dict[int, list[str]] = {}
    for field, name in fields:
        value = f"(uint{max(field.storage, 32)}_t){name}" if field.kind in "ui" else f"hm_{field.offset}.bits"
        if field.kind == "f":
            yield f"hm_{field.offset}.real = {name};"
        if field.kind in "uif":
            for byte, part in _bytes_of(field, value):
                parts.setdefault(byte, []).append(part)
    for byte in sorted(parts):
        yield f"payload[{byte}] = (unsigned char)({' | '.join(parts[byte])});"
    for field, name in fields:
        if field.kind in ("char", "bytes"):
            yield from _copying(field, name, length)
    last = kind.fields[-1]
    yield f"return {kind.size};" if last.bits is not None else f"return (int)({last.offset // 8} + hm_i);"


def _copying(field: Field, name: str, length: str) -> Iterator[str]:
    """Text until its zero, padded with zeros if the field is longer; or bytes."""
    first = field.offset // 8
    room = field.bits // 8 if field.bits is not None else PAYLOAD_MAX - first
    if field.kind == "char":
        yield f"for (hm_i = 0; {name}[hm_i] != '\\0'; hm_i++) {{"
        yield f"    if (hm_i == {room})"
        yield "        return -1;"
        yield f"    payload[{first} + hm_i] = (unsigned char){name}[hm_i];"
        yield "}"
        if field.bits is not None:
            yield f"for (; hm_i < {room}; hm_i++)"
            yield f"    payload[{first} + hm_i] = 0;"
        return
    if field.bits is None:
        yield f"if ({length} > {room})"
        yield "    return -1;"
    yield f"for (hm_i = 0; hm_i < {room if field.bits is not None else length}; hm_i++)"
    yield f"    payload[{first} + hm_i] = ((const unsigned char *){name})[hm_i];"


def _bytes_of(field: Field, value: str) -> Iterator[tuple[int, str]]:
    """The bytes that a number touches, and what it writes there."""
    end = field.offset + (field.bits or 0)
    for byte in range(field.offset // 8, (end + 7) // 8):
        low, high = max(field.offset, 8 * byte), min(end, 8 * byte + 8)
        part = f"{value}{f' >> {low - field.offset}' if low > field.offset else ''} & {2**(high - low) - 1:#x}u"
        yield byte, (part if high - low == 8 else f"({part}) << {low - 8 * byte}" if low > 8 * byte else f"({part})")
