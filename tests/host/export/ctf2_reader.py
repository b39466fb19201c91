"""Reads Common Trace Format 2 by its metadata alone: written from CTF2-SPEC-2.0, without a look at the writer.

What this reader does not know (a fragment, a field class, a property, a role) is an error, as is what the standard
requires and a trace lacks.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: Properties that a fragment must have, and those that it may have, of all that the standard defines.
FRAGMENTS = {
    "preamble": ({"version"}, {"uuid"}),
    "trace-class": (set(), {"namespace", "name", "uid", "packet-header-field-class", "environment"}),
    "clock-class": ({"id", "frequency"}, {"namespace", "name", "uid", "description", "origin", "offset-from-origin",
                                          "precision", "accuracy"}),
    "data-stream-class": (set(), {"id", "namespace", "name", "uid", "default-clock-class-id",
                                  "packet-context-field-class", "event-record-header-field-class",
                                  "event-record-common-context-field-class"}),
    "event-record-class": (set(), {"id", "data-stream-class-id", "namespace", "name", "uid",
                                   "specific-context-field-class", "payload-field-class"}),
}
_INTEGER = {"length", "byte-order"}, {"bit-order", "alignment", "preferred-display-base", "mappings", "roles"}
FIELD_CLASSES = {
    "fixed-length-unsigned-integer": _INTEGER,
    "fixed-length-signed-integer": _INTEGER,
    "fixed-length-floating-point-number": ({"length", "byte-order"}, {"bit-order", "alignment"}),
    "static-length-string": ({"length"}, {"encoding"}),
    "dynamic-length-string": ({"length-field-location"}, {"encoding"}),
    "static-length-array": ({"element-field-class", "length"}, {"minimum-alignment"}),
    "dynamic-length-array": ({"element-field-class", "length-field-location"}, {"minimum-alignment"}),
    "structure": (set(), {"member-classes", "minimum-alignment"}),
}
ROLES = {
    "packet-header-field-class": {"packet-magic-number", "data-stream-class-id", "data-stream-id"},
    "packet-context-field-class": {
        "packet-total-length", "packet-content-length", "default-clock-timestamp", "packet-end-default-clock-timestamp",
        "discarded-event-record-counter-snapshot", "packet-sequence-number"},
    "event-record-header-field-class": {"event-record-class-id", "default-clock-timestamp"},
    "payload-field-class": set(),
}


def checked(said: dict, table: dict[str, tuple[set[str], set[str]]]) -> None:
    must, may = table[said["type"]]
    names = set(said) - {"type", "attributes", "extensions"}
    assert must <= names <= must | may, said


def metadata(path: Path) -> list[dict]:
    """The fragments: JSON texts, each after a record separator and before a line feed (RFC 7464)."""
    text = path.read_bytes()
    assert text[:1] == b"\x1e"
    assert text[-1:] == b"\n"
    fragments = [json.loads(part) for part in text[1:].split(b"\x1e")]
    for fragment in fragments:
        checked(fragment, FRAGMENTS)
        for name, said in fragment.items():
            if name.endswith("-field-class"):
                assert said["type"] == "structure"
                _check_class(said, ROLES[name])
    assert [fragment["type"] for fragment in fragments].count("preamble") == 1
    assert fragments[0] == {"type": "preamble", "version": 2}
    return fragments


def _check_class(said: dict, roles: set[str]) -> None:
    checked(said, FIELD_CLASSES)
    assert set(said.get("roles", ())) <= roles
    assert said.get("byte-order", "little-endian") == "little-endian"
    assert said.get("alignment", 1) in (1, 2, 4, 8, 16, 32, 64)
    for ranges in said.get("mappings", {}).values():
        assert all(low <= high for low, high in ranges)
        assert ranges
    members = said.get("member-classes", ())
    assert len({member["name"] for member in members}) == len(members)
    for member in members:
        _check_class(member["field-class"], roles)
    if "element-field-class" in said:
        _check_class(said["element-field-class"], roles)


def alignment(said: dict) -> int:
    """Of a field, in bits: section 6.1."""
    if said["type"].endswith("string"):
        return 8
    if said["type"] == "structure":
        return max([said.get("minimum-alignment", 1),
                    *(alignment(member["field-class"]) for member in said.get("member-classes", ()))])
    if said["type"].endswith("array"):
        return max(said.get("minimum-alignment", 1), alignment(said["element-field-class"]))
    return said.get("alignment", 1)


@dataclass
class Bits:
    """Little-endian fields of a stream, in the order of their bits."""

    data: bytes
    at: int = 0
    roles: dict[str, int] = field(default_factory=dict)

    def number(self, length: int) -> int:
        first, last = self.at // 8, (self.at + length + 7) // 8
        assert last <= len(self.data)
        value = int.from_bytes(self.data[first:last], "little") >> self.at % 8 & (1 << length) - 1
        self.at += length
        return value

    def read(self, said: dict, outer: dict | None = None) -> object:
        kind, size = said["type"], alignment(said)
        self.at = -(-self.at // size) * size
        if kind == "structure":
            found: dict = {}
            for member in said.get("member-classes", ()):
                found[member["name"]] = self.read(member["field-class"], found if outer is None else outer)
            return found
        if kind.startswith("fixed"):
            value = self.number(length := said["length"])
            if kind.endswith("number"):
                return struct.unpack({32: "<f", 64: "<d"}[length], value.to_bytes(length // 8, "little"))[0]
            if kind == "fixed-length-signed-integer" and value >> length - 1:
                value -= 1 << length
            self.roles.update(dict.fromkeys(said.get("roles", ()), value))
            return value
        if "length-field-location" in said:
            assert said["length-field-location"]["origin"] == "event-record-payload"
            [name] = said["length-field-location"]["path"]
            count = outer[name]
        else:
            count = said["length"]
        if kind.endswith("string"):
            raw = bytes(self.number(8) for _ in range(count))
            return raw.partition(b"\0")[0].decode(said.get("encoding", "utf-8"), "replace")
        return [self.read(said["element-field-class"], outer) for _ in range(count)]


@dataclass
class Packet:
    begin: int
    end: int
    discarded: int
    number: int
    node: int
    records: list[tuple[int, str, dict]]


def packets(folder: Path) -> Iterator[Packet]:
    """All packets, stream by stream; of each, its event records: the clock's value, the name, the payload."""
    fragments = metadata(folder / "metadata")
    [trace] = [said for said in fragments if said["type"] == "trace-class"]
    streams = {said.get("id", 0): said for said in fragments if said["type"] == "data-stream-class"}
    events = {(said.get("data-stream-class-id", 0), said.get("id", 0)): said
              for said in fragments if said["type"] == "event-record-class"}
    clocks = {said["id"] for said in fragments if said["type"] == "clock-class"}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes() if path.name != "metadata" else b""
        while data:
            bits = Bits(data)
            bits.read(trace["packet-header-field-class"])
            assert bits.roles["packet-magic-number"] == 0xC1FC1FC1
            stream_class = bits.roles["data-stream-class-id"]
            own = streams[stream_class]
            assert own["default-clock-class-id"] in clocks
            context = bits.read(own["packet-context-field-class"])
            said, total = dict(bits.roles), bits.roles["packet-total-length"]
            assert total % 8 == 0
            packet = Packet(said["default-clock-timestamp"], said["packet-end-default-clock-timestamp"],
                            said["discarded-event-record-counter-snapshot"], said["packet-sequence-number"],
                            context["node"], [])
            while bits.at < said["packet-content-length"]:
                bits.read(own["event-record-header-field-class"])
                kind = events[stream_class, bits.roles["event-record-class-id"]]
                time = bits.roles["default-clock-timestamp"]
                packet.records.append((time, kind["name"], bits.read(kind["payload-field-class"])))
                bits.at = -(-bits.at // 8) * 8      # the next record's header begins with a whole byte
            yield packet
            data = data[total // 8:]
