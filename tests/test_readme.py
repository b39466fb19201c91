"""The README is short, and says how large the set-up is."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_it_is_read_in_five_minutes():
    assert len((ROOT / "README.md").read_text().split()) <= 1000


def test_the_set_up_is_as_large_as_it_says():
    """Of the environment that `make setup` makes; tests in another one know nothing about it."""
    if not (Path(sys.prefix) / ".installed-dev").exists():
        pytest.skip("not the environment of make setup")
    size = sum(entry.stat(follow_symlinks=False).st_size for entry in Path(sys.prefix).rglob("*")) / 1e9
    said = {float(number) for name in ("Makefile", "CONTRIBUTING.md")
            for number in re.findall(r"setup.*?1 minute, ([\d.]+) GB", (ROOT / name).read_text())}
    assert len(said) == 1
    assert said.pop() == pytest.approx(size, rel=0.15)
