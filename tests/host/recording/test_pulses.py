"""UTC by pulses: right to what is printed, and every pulse that is missing, doubled, early or late is counted."""

import random

import pytest
from hypermon.host.recording.clock import WallClock, load_clock, save_clock
from hypermon.host.recording.pulses import pulse_clock

SECOND = 10**12
CLOCK = 10_000
BEGAN = 1_790_000_000_123_456_789       # UTC of time 0, ns


def pulses(count: int, ppm: float = 0.0, jitter_ps: int = 0, seed: int = 1) -> list[int]:
    """The board's times of the beginnings of seconds, as its clock sees them; ``ppm``: it is fast by these."""
    rng = random.Random(seed)
    first = 10**9 - BEGAN % 10**9
    true = [(first + k * 10**9) * 1000 + rng.randint(-jitter_ps, jitter_ps) for k in range(count)]
    return [round(time * (1 + ppm * 1e-6)) // CLOCK * CLOCK for time in true]


def host(off_ns: int = 0) -> WallClock:
    return WallClock(BEGAN + off_ns, 0.0, 1_000_000, 10)


def worst(clock: WallClock, ppm: float, until_s: int) -> float:
    """The largest error of UTC in nanoseconds, from time 0 to the end."""
    errors = []
    for at in range(0, until_s * 10**9, 10**8):
        board_ps = round(at * 1000 * (1 + ppm * 1e-6))
        errors.append(abs(int(clock.utc(board_ps).astype("int64")) - BEGAN - at))
    return max(errors)


@pytest.mark.parametrize("ppm", [0.0, 48.7, -50.0])
@pytest.mark.parametrize(("jitter", "off"), [(0, 0), (50_000, 300_000_000), (500_000, -400_000_000)])
def test_utc_to_a_clock_and_the_jitter(ppm, jitter, off):
    """Whatever the host's clock says, as long as it is right to half a second."""
    found = pulse_clock(pulses(30, ppm, jitter), host(off), CLOCK, 31 * SECOND)
    assert (found.how, found.answers, found.pulses["used"]) == ("pps", 30, 30)
    assert [found.pulses[name] for name in ("missing", "doubled", "strayed")] == [0, 0, 0]
    assert found.drift_ppm == pytest.approx(-ppm, abs=0.05)
    error = worst(found, ppm, 30)
    assert error <= found.uncertainty_ns
    assert error <= 10 + jitter / 1000 + 1
    assert found.uncertainty_ns <= 1.2 * (20 + 2 * jitter / 1000)
    assert 1.0 < found.pulses["holdover_s"] < 2.0


@pytest.mark.parametrize("seed", range(6))
def test_each_fault_is_counted_and_moves_nothing(seed):
    rng = random.Random(seed)
    ppm = rng.uniform(-50, 50)
    good = pulses(40, ppm, 20_000, seed)
    plain = pulse_clock(good, host(), CLOCK, 41 * SECOND)
    missing, doubled, strayed = rng.sample(range(2, 38), 3)
    bad = list(good)
    bad[strayed] += rng.choice((-1, 1)) * rng.randint(10**8, 4 * 10**11)
    bad.insert(doubled + 1, bad[doubled] + rng.choice((30_000, 5 * 10**10)))
    del bad[missing + (missing > doubled)]
    bad.sort()
    found = pulse_clock(bad, host(), CLOCK, 41 * SECOND)
    faults = found.pulses
    # A second whose pulse strayed has none; a double that is far from its second is a stray one.
    assert faults["missing"] == 2
    assert faults["doubled"] + faults["strayed"] == 2
    assert faults["strayed"] >= 1
    assert faults["holdover_s"] > 1.9
    assert abs(found.utc_ns - plain.utc_ns) <= 40
    assert worst(found, ppm, 40) <= found.uncertainty_ns
    said = found.as_text()
    assert "by pulses" in said
    assert "2 missing" in said
    assert "early or late" in said


def test_a_first_pulse_that_strayed_does_not_shift_all():
    good = pulses(20)
    for wrong in (good[0] - 2 * 10**11, good[0] + 3 * 10**11):
        found = pulse_clock(sorted([wrong, *good[1:]]), host(), CLOCK, 21 * SECOND)
        assert (found.pulses["used"], found.pulses["strayed"]) == (19, 1)
        assert worst(found, 0, 20) <= found.uncertainty_ns


def test_pulses_that_ended_early_are_held_over():
    """UTC is less certain afterwards, and it is said for how long."""
    found = pulse_clock(pulses(10, 12.5, 20_000), host(), CLOCK, 100 * SECOND)
    assert found.pulses["holdover_s"] == pytest.approx(90, abs=1)
    assert found.uncertainty_ns > 10 * 30
    assert worst(found, 12.5, 99) <= found.uncertainty_ns


@pytest.mark.parametrize("times", [[], [SECOND], [SECOND, 2 * SECOND], [k * 3 * 10**11 // 7 for k in range(2)]])
def test_too_few_pulses(times):
    assert pulse_clock(times, host(), CLOCK, 100 * SECOND) is None


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_never_a_clock_that_seems_exact(seed):
    """Rises at any times: no clock, or one that says how few of them it used."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(0, 50 * SECOND) for _ in range(rng.choice((3, 10, 60))))
    found = pulse_clock(times, host(), CLOCK, 50 * SECOND)
    if found is not None:
        assert found.pulses["strayed"] + found.pulses["doubled"] + found.pulses["missing"] > found.pulses["used"]


def test_it_is_kept(tmp_path):
    found = pulse_clock(pulses(5), host(), CLOCK, 6 * SECOND)
    save_clock(tmp_path, found)
    assert load_clock(tmp_path) == found
