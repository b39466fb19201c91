"""Which tests only ``make test-all`` runs: those that ``tests/long.txt`` lists. And a share of them, for one run.

``python -m tests.long_tail FILE 0.7 8`` proposes lines: of the times that :mod:`tests.cpu_times` wrote to FILE, the
tests that took more than 0.7 s, but in each file not the one that took least, if that was up to 8 s.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["LongTail", "proposed", "share"]


class LongTail:
    """The list, read.

    A line is the identifier of a test below ``tests/`` (``hdl/whole/test_exact.py::test_traffic[deep-*]``); ``*`` means
    any text. An identifier without ``[`` means all tests of that function, one without ``::`` all of that file. ``#``
    begins a comment.

    Raises
    ------
    ValueError
        for a line that does not name a file of tests; it says which line.
    """

    def __init__(self, path: Path) -> None:
        self._folder, self._path = path.parent, path
        self._lines: defaultdict[tuple[str, str], list[tuple[int, re.Pattern[str]]]] = defaultdict(list)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if name := line.partition("#")[0].strip():
                file, _, test = name.partition("::")
                if not (self._folder / file).is_file():
                    raise ValueError(f"{path}:{number}: there is no tests/{file}")
                self._lines[file, test.partition("[")[0]].append((number, _pattern(test)))

    def has(self, file: str, test: str) -> bool:
        """Is the test listed? ``file`` is below ``tests/``, ``test`` has its parameters."""
        return any(pattern.fullmatch(test) for _, pattern in self._of(file, test))

    def stale(self, collected: Iterable[tuple[str, str]]) -> list[str]:
        """Lines about files that were collected, file and test each, which match none of their tests."""
        files, found = set(), set()
        for file, test in collected:
            files.add(file)
            found.update(number for number, pattern in self._of(file, test) if pattern.fullmatch(test))
        lost = sorted((number, file) for (file, _), lines in self._lines.items() if file in files
                      for number, _ in lines if number not in found)
        return [f"{self._path}:{number}: no test of tests/{file} is called that" for number, file in lost]

    def _of(self, file: str, test: str) -> list[tuple[int, re.Pattern[str]]]:
        return self._lines.get((file, ""), []) + self._lines.get((file, test.partition("[")[0]), [])


def _pattern(test: str) -> re.Pattern[str]:
    if not test:
        return re.compile(".*", re.DOTALL)
    given = ".*".join(re.escape(part) for part in test.split("*"))
    return re.compile(given if "[" in test else rf"{given}(\[.*\])?", re.DOTALL)


def share(files: Iterable[str], asked: str) -> set[str]:
    """Files of one share.

    Parameters
    ----------
    files : all, in any order.
    asked : "2/4" for the second of four. Each file is in one of the four. Files of one folder are in different ones.

    Raises
    ------
    ValueError
        if ``asked`` is no such share.
    """
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", asked)
    number, of = (int(figure) for figure in found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise ValueError(f"{asked!r} is no share: 2/4 is the second of four")
    return set(sorted(set(files))[number - 1::of])


def proposed(times: Mapping[str, float], most: float, keep: float) -> list[str]:
    """Lines for tests that took more than ``most`` seconds of processor time.

    Parameters
    ----------
    times : seconds by a test's identifier, as pytest names it.
    keep : of each file, the test that took least stays in ``make test``, if it took no more than this.
    """
    files: defaultdict[str, list[str]] = defaultdict(list)
    functions: defaultdict[str, list[str]] = defaultdict(list)
    for test in times:
        files[test.partition("::")[0]].append(test)
        functions[test.partition("[")[0]].append(test)
    cheapest = {min(tests, key=times.__getitem__) for tests in files.values()}
    long = {test for test, took in times.items() if took > (keep if test in cheapest else most)}
    found = set()
    for function, tests in functions.items():
        own = long.intersection(tests)
        found.update([function] if len(own) == len(tests) else own)
    return sorted(test.removeprefix("tests/") for test in found)


if __name__ == "__main__":
    seen = dict(json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines())
    print(*proposed(seen, *map(float, sys.argv[2:])), sep="\n")
