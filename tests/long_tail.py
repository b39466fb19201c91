"""Which tests only ``make test-all`` runs: those that ``tests/long.txt`` lists."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

__all__ = ["LongTail"]


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
