"""A bad line does what it is asked to, and says so."""

import pytest
from hypermon.sim.serve.line_faults import LineFaults

DATA = bytes(range(256)) * 100


def test_a_good_line():
    line = LineFaults()
    assert line.pass_on(DATA) == DATA
    assert line.counts == {"bytes": len(DATA), "lost": 0, "changed": 0, "added": 0}


def test_the_same_seed_does_the_same():
    first, second, other = (LineFaults(0.1, 0.1, 0.1, seed=seed).pass_on(DATA) for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize(("what", "shares"), [("lost", (0.1, 0, 0)), ("changed", (0, 0.1, 0)), ("added", (0, 0, 0.1))])
def test_one_fault(what, shares):
    line = LineFaults(*shares, seed=3)
    out = line.pass_on(DATA)
    assert sum(line.counts[name] for name in ("lost", "changed", "added")) == line.counts[what]
    assert line.counts[what] == pytest.approx(0.1 * len(DATA), rel=0.1)
    assert len(out) == len(DATA) - line.counts["lost"] + line.counts["added"]
    if what == "changed":
        changes = [a ^ b for a, b in zip(out, DATA, strict=True) if a != b]
        assert len(changes) == line.counts["changed"]
        assert {change.bit_count() for change in changes} == {1}
