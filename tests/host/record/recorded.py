"""A run that a fake board plays, and its recording that must end early."""

import random

import pytest
from hypermon.hdl.layout import Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import CutShortError, record
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, random_run


def board(nodes=16, window=Window.NS800, gap=1000):
    return random_run(FakeBoard(nodes, window=window), random.Random(3), 12, losses=0.5, gap=gap)


def cut_short(link, path, match, **options):
    """Records what must end early; the accounts of what is kept."""
    with pytest.raises(CutShortError, match=match) as cut:
        record(Device(link), path, options.pop("settings", Settings()), **options)
    end = open_run(path).info.end
    assert not end["proper"]
    assert cut.value.status == 3
    assert str(cut.value).startswith(f"{path}: the recording ended early: {end['how']}; ")
    return cut.value.ledger


def rows(run):
    return [tuple(r.values()) for r in run.events().to_pylist()]
