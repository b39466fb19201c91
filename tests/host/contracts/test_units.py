"""Times with units."""

import pytest
from hypermon.host.contracts.units import ps_of


@pytest.mark.parametrize(("text", "ps"), [
    ("20 us", 20_000_000), ("20us", 20_000_000), ("1.5 ms", 1_500_000_000), ("0 s", 0), ("2 min", 120 * 10**12),
    ("3 \u00b5s", 3_000_000), ("3 \u03bcs", 3_000_000), ("0.001 ns", 1), ("7 ps", 7), ("1 h", 3600 * 10**12)])
def test_times(text, ps):
    assert ps_of(text) == ps


@pytest.mark.parametrize("text", ["20", 20, None, "20 km", "-1 us", "1e3 us", "nan s", "0.5 ps", "300 h", "1 us 2 ns",
                                  "", "1" * 100 + " s"])
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=r"unit|whole|longer"):
        ps_of(text)
