"""Damages of run directories: what copies, disks, hands and strangers do to files."""

import json
import os
import shutil

DEEP = "[" * 200_000
WEIRD = [None, [], {}, -1, 0, 2**70, 1e308, float("nan"), "", "\x00", True, [[]], {"a": 1}, "9" * 5000]


def _cut(rng, path, other):
    data = path.read_bytes()
    path.write_bytes(data[:rng.randrange(max(len(data), 1))])


def _flip(rng, path, other):
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 5))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _swap(rng, path, other):
    shutil.copy2(other, path)


def _replaced(make):
    def replace(rng, path, other):
        path.unlink()
        make(path)
    return replace


def _member(rng, path, other):
    """A member of a JSON file is something else, or gone; as by hand, without the checksum."""
    values = json.loads(path.read_text())
    values.pop("check", None)
    place = values
    key = rng.choice(list(place))
    while isinstance(place[key], dict) and place[key] and rng.random() < 0.6:
        place = place[key]
        key = rng.choice(list(place))
    if rng.random() < 0.3:
        del place[key]
    elif isinstance(place[key], list) and place[key] and rng.random() < 0.6:
        place[key][rng.randrange(len(place[key]))] = rng.choice(WEIRD)
    else:
        place[key] = rng.choice(WEIRD)
    path.write_text(json.dumps(values))


#: Function of a random generator, the file, and the file of that name of another run.
DAMAGES = {
    "cut": _cut, "flip": _flip, "swap": _swap,
    "gone": lambda rng, path, other: path.unlink(),
    "empty": lambda rng, path, other: path.write_bytes(b""),
    "zeros": lambda rng, path, other: path.write_bytes(bytes(path.stat().st_size)),
    "noise": lambda rng, path, other: path.write_bytes(rng.randbytes(rng.randrange(5000))),
    "longer": lambda rng, path, other: path.write_bytes(path.read_bytes() + rng.choice((b"\0", b"}", b"x" * 100))),
    "renamed": lambda rng, path, other: path.rename(path.with_name(f"{path.name}\n\x1b[31m")),
    "closed": lambda rng, path, other: path.chmod(0),
    "directory": _replaced(os.mkdir), "pipe": _replaced(os.mkfifo),
    "loop": _replaced(lambda path: path.symlink_to(path.name)),
    "null": _replaced(lambda path: path.symlink_to("/dev/null")),
    "endless": _replaced(lambda path: path.symlink_to("/dev/zero")),
}
#: The same, of JSON files.
JSON_DAMAGES = {
    "deep": lambda rng, path, other: path.write_text(DEEP),
    "digits": lambda rng, path, other: path.write_text('{"format": ' + "9" * 5000 + "}"),
    "huge": lambda rng, path, other: path.write_text('{"format": 1, "x": "' + "a" * 5_000_000 + '"}'),
    "member": _member,
}
