"""Limits of waits grow with the load of the machine."""

from types import SimpleNamespace

import pytest

from . import patience as limits


@pytest.fixture
def machine(monkeypatch):
    """``machine(now, load)``: the clock, and how many processes want a core."""
    monkeypatch.setattr(limits, "_processor", lambda: 1.0)

    def set_to(now: float, load: float) -> None:
        if now == 0.0:
            monkeypatch.setattr(limits, "_LATELY", limits.deque())
        monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: now))
        monkeypatch.setattr(limits, "_load", lambda: load)

    return set_to


def test_a_limit_grows_with_the_load(machine):
    machine(0.0, 3.0)
    assert limits.patience(2.0) == 6.0
    machine(1.0, 100.0)
    assert limits.patience(2.0) == 2 * limits._MOST


def test_a_limit_that_follows_another_is_of_no_idler_machine(machine):
    machine(0.0, 10.0)
    first = limits.patience(0.6)
    machine(first + 1, 1.0)
    limits.in_time(0.0, 2.5)
    machine(0.0 + 2.5 * 10 + 1, 1.0)
    with pytest.raises(TimeoutError, match=r"2\.5 s would do"):
        limits.in_time(0.0, 2.5)
    machine(100.0, 1.0)
    assert limits.patience(1.0) == 1.0
