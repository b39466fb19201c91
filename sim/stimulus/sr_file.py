"""Stimulus from a sigrok session file (``.sr``): a zip of ``metadata`` and raw logic samples."""

import configparser
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.picoseconds import Times, rounded_up
from hypermon.sim.stimulus.port_mapping import Mapping, option_text
from hypermon.sim.stimulus.rows import Levels, Track, level_type

__all__ = ["channels_of_sr", "read_sr"]

_RATE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([kKMmGg]?)(?:[Hh]z)?")
#: Maximum bytes of metadata, and of a sample.
_METADATA, _UNIT = 1 << 20, 1 << 12
#: Maximum changes of lines in memory, twice 9 bytes each: a fixed number, and some more for every byte of the file.
#: Packed samples of a few kilobytes can have billions.
_CHANGES, _CHANGES_A_BYTE = 1 << 24, 4
_PIECE = 1 << 22
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class _Session:
    """The first device with logic samples of an open session file."""

    def __init__(self, source: InputFile, archive: zipfile.ZipFile):
        path = source.name
        self.path, self.archive = path, archive
        # Interpolation off: a probe may be called "100%".
        parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=(";",))
        try:
            with archive.open("metadata") as file:
                metadata = file.read(_METADATA + 1)
            if len(metadata) > _METADATA:
                raise InputError(path, None, f"its metadata are longer than {_METADATA:,} bytes")
            # An indented line is a key, too, and does not continue the one before.
            lines = metadata.decode("utf-8", "replace").splitlines()
            parser.read_string("\n".join(line.lstrip() for line in lines))
        except KeyError:
            raise InputError(path, None, "not a sigrok session file: it has no metadata") from None
        except configparser.Error as error:
            reason = " ".join(str(error).split())
            raise InputError(path, None, f"its metadata cannot be read: {reason}") from None
        devices = [name for name in parser.sections() if parser.has_option(name, "capturefile")]
        if not devices:
            raise InputError(path, None, "its metadata name no logic samples (capturefile)")
        self.section = dict(parser.items(devices[0]))
        #: Lines about how the file is read.
        self.notes: tuple[str, ...] = () if len(devices) == 1 else (
            f"{path}: it has logic samples of {len(devices)} devices; only those of the first, {devices[0]}, are read",)
        self.channels: dict[str, int | None] = {}
        for key, value in self.section.items():
            if match := re.fullmatch(r"probe([0-9]{1,9})", key):
                # None: two channels have this name.
                self.channels[value] = int(match[1]) - 1 if value not in self.channels else None
        self.unit = self._number("unitsize", _UNIT)
        self.most = _CHANGES + source.size * _CHANGES_A_BYTE
        self.rate = self._rate()

    def _number(self, key: str, most: int) -> int:
        text = self._text(key)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
            raise InputError(self.path, None, f"its {key} is {text!r:.60}: a number of bytes from 1 to {most} is "
                                              "expected")
        return int(text)

    def _text(self, key: str) -> str:
        """The value of a key, without blanks at its ends."""
        if key not in self.section:
            raise InputError(self.path, None, f"its metadata have no {key}")
        return self.section[key].strip()

    def _rate(self) -> Fraction:
        text = self._text("samplerate")
        match = _RATE.fullmatch(text)
        if match is None or Fraction(match[1]) == 0:
            raise InputError(self.path, None, f"its samplerate is {text!r:.60}: a frequency above 0 is expected, such "
                                              "as 1 MHz")
        return Fraction(match[1]) * _SCALE[match[2].lower()]

    def bit(self, channel: str) -> int:
        """Position of a channel in a sample."""
        if channel not in self.channels:
            names = ", ".join(map(option_text, self.channels)) or "none"
            raise InputError(self.path, None, f"unknown channel {option_text(channel)}; there are {names}")
        bit = self.channels[channel]
        if bit is None:
            raise InputError(self.path, None, f"two channels are called {channel}")
        if not 0 <= bit < 8 * self.unit:
            raise InputError(self.path, None, f"channel {channel} has no place in samples of {self.unit} bytes")
        return bit

    def samples(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Chunks of samples in order, ``unit`` bytes each; a sample may span two files."""
        name = self.section["capturefile"]
        pattern = re.compile(re.escape(name) + r"(?:-([0-9]{1,9}))?")
        found = sorted((int(m[1] or 0), m[0]) for m in map(pattern.fullmatch, self.archive.namelist()) if m)
        rest = b""
        for expected, (number, member) in enumerate(found, found[0][0] and 1 if found else 0):
            if number != expected:
                reason = "is there twice" if number < expected else f"follows, and {name}-{expected} is missing"
                raise InputError(self.path, None, f"its samples are not complete and in order: {member} {reason}")
            with self.archive.open(member) as stream:
                while piece := stream.read(_PIECE):
                    data = rest + piece
                    whole = len(data) - len(data) % self.unit
                    rest = data[whole:]
                    if whole:
                        yield np.frombuffer(data, np.uint8, whole).reshape(-1, self.unit)
        if rest:
            raise InputError(self.path, None, f"its last sample is cut short: {len(rest)} of {self.unit} bytes")


def _changes(chunk: npt.NDArray[np.uint8]) -> Times:
    """Numbers of the samples that differ from the previous one, from 1."""
    unit = chunk.shape[1]
    words: npt.NDArray[np.unsignedinteger] = chunk.view(f"<u{unit}")[:, 0] if unit in (1, 2, 4, 8) else chunk
    differ = words[1:] != words[:-1]
    return np.flatnonzero(differ if differ.ndim == 1 else differ.any(axis=1)) + 1


def read_sr(source: InputFile, mappings: Sequence[Mapping]) -> list[Track]:
    """Reads the mapped channels; a sample's time is its number over the sample rate, rounded up.

    Raises
    ------
    InputError
        if the file is not a session file, lacks samples, or has no such channel.
    """
    with _session(source) as session:
        return _read(session, mappings)


def channels_of_sr(source: InputFile) -> list[str]:
    """Names of the channels; errors as :func:`read_sr`."""
    with _session(source) as session:
        return list(map(option_text, session.channels))


@contextmanager
def _session(source: InputFile) -> Iterator[_Session]:
    try:
        with source.opened() as file, zipfile.ZipFile(file) as archive:
            yield _Session(source, archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(source.name, None, f"not a sigrok session file: {error}") from None


def _read(session: _Session, mappings: Sequence[Mapping]) -> list[Track]:
    bits = [[session.bit(channel) for channel in m.channels] for m in mappings]
    initial: list[int] = [0] * len(mappings)
    level: list[int] = [-1] * len(mappings)
    times: list[list[Times]] = [[] for _ in mappings]
    values: list[list[Levels]] = [[] for _ in mappings]
    period = 10**12 / session.rate
    first = changes = 0
    for chunk in session.samples():
        at = np.concatenate([np.zeros(1, np.int64), _changes(chunk)])
        rows = chunk[at]
        for k, places in enumerate(bits):
            kind = level_type(len(places) - 1)
            port = np.zeros(len(at), kind)
            for i, bit in enumerate(places):
                port |= (rows[:, bit // 8] >> np.uint8(bit % 8) & np.uint8(1)).astype(kind) << kind(i)
            if level[k] < 0:
                initial[k] = level[k] = int(port[0])
            differ = port != np.concatenate([np.array([level[k]], kind), port[:-1]])
            changes += int(np.count_nonzero(differ))
            if changes > session.most:
                raise InputError(session.path, None, f"more than {session.most:,} changes of its lines, too many "
                                                     "for a file of its size: play a part of it")
            try:
                times[k].append(rounded_up(first + at[differ], period.numerator, period.denominator))
            except OverflowError:
                raise InputError(session.path, None, "a sample's time is beyond 2^63 ps") from None
            values[k].append(port[differ])
            level[k] = int(port[-1])
        first += len(chunk)
    if not first:
        raise InputError(session.path, None, "it has no logic samples")
    return [Track(level, np.concatenate(own), np.concatenate(ports), notes=session.notes)
            for level, own, ports in zip(initial, times, values, strict=True)]
