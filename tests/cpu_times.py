"""Processor time of each test, its commands and compilers included: ``pytest -p tests.cpu_times --cpu-times FILE``.

`tests/long_tail.py` makes lines of `tests/long.txt` of it. One JSON list per line: file and name of the test, seconds.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", type=Path, required=True, metavar="FILE", help="append each test's processor time")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    began = sum(os.times()[:4])
    done = yield
    with open(item.config.getoption("--cpu-times"), "a") as file:
        file.write(json.dumps([item.nodeid, round(sum(os.times()[:4]) - began, 3)]) + "\n")
    return done
