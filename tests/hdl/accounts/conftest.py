"""What many seeds come upon."""

import json
from pathlib import Path

import pytest


class Occasions:
    """How often each kind of occasion came up in runs of the seeds of a file, which are in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, seed: int) -> str:
        """Where the run of a seed writes its own."""
        return str(self._folder / f"{seed}.json")

    def complete(self, seeds: int) -> None:
        """Fails if a kind came up in none of so many seeds; skips if fewer have run here."""
        runs = [json.loads(path.read_text()) for path in self._folder.glob("*.json")]
        if len(runs) < seeds:
            pytest.skip(f"{len(runs)} of {seeds} seeds have run")
        sums = {name: sum(run[name] for run in runs) for name in runs[0]}
        assert all(sums.values()), sums


@pytest.fixture(scope="module")
def occasions(tmp_path_factory) -> Occasions:
    return Occasions(tmp_path_factory.mktemp("occasions"))
