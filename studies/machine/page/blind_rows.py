"""The rows of the blind runs: the parameters that were drawn, and whether the analyses found them."""

import json
from collections.abc import Iterator

from hypermon.studies.machine.page.rows import Data, Row

__all__ = ["blind"]

#: Tolerances: relative, but us for the constant of short messages, bytes for plateaus.
_IPSC860 = {"short_constant_us": 0.5, "short_byte_us": 0.005, "short_hop_us": 0.005, "long_constant_us": 0.005,
            "long_byte_us": 0.005, "plateau_bytes": 50}
_ABSOLUTE = ("short_constant_us", "plateau_bytes")
_PERIOD = 0.01
_DURATION_MS, _PERIOD_S = 0.1, 0.01
#: Bytes by which the sizes that are tried differ, us, and a share of a rate.
_QSNET = {"block_bytes": 2, "inline_bytes": 4, "match_us": 0.02, "main_us": 0.02}
_RATE = 0.01


def blind(data: Data, machine: str) -> Iterator[Row]:
    """One row for each machine."""
    function = {"ipsc860": _ipsc860, "asciq": _asciq, "sp2": _sp2, "qsnet": _qsnet}[machine]
    verdicts = [(int(row["seed"]), function(data, row)) for row in data.rows("single", task=f"blind {machine} ")]
    failed = [f"{seed}: {', '.join(wrong)}" for seed, wrong in verdicts if wrong]
    yield Row("blind runs: parameters of the R rows drawn within 30 %", "-", "R", "all found, 20 seeds",
              f"{len(verdicts) - len(failed)} of {len(verdicts)} seeds" if verdicts else "",
              met=not failed and len(verdicts) == 20 if verdicts else None, note="; ".join(failed))


def _ipsc860(data: Data, row: dict[str, object]) -> list[str]:
    wrong = []
    for name, near in _IPSC860.items():
        planted, found = (float(row.get(key, "nan")) for key in (f"planted_{name}", name))  # type: ignore[arg-type]
        if not abs(found - planted) <= near * (1 if name in _ABSOLUTE else planted):
            wrong.append(name)
    return wrong


def _asciq(data: Data, row: dict[str, object]) -> list[str]:
    planted = json.loads(str(row["planted"]))
    found = data.rows("sources", task=row["task"], seed=row["seed"])
    found = [one for one in found if one["task"] == row["task"]]
    wrong = [f"node {one['node']}: {one['period_s']:.1f} s, {one['duration_ms']:.1f} ms" for one in planted if not any(
        other["node"] == one["node"] and abs(other["duration_ms"] - one["duration_ms"]) <= _DURATION_MS
        and abs(other.get("period_s", 0) / one["period_s"] - 1) <= _PERIOD_S for other in found)]
    return wrong + ([f"{len(found)} sources for {len(planted)}"] if len(found) != len(planted) else [])


def _sp2(data: Data, row: dict[str, object]) -> list[str]:
    found = [one["value"] for one in data.rows("periods_us") if one["task"] == row["task"]]
    return [name for name in ("dispatcher", "timer")
            if not any(abs(value / float(row[f"planted_{name}_us"]) - 1) <= _PERIOD for value in found)]  # type: ignore[arg-type]


def _qsnet(data: Data, row: dict[str, object]) -> list[str]:
    wrong = [name for name, near in _QSNET.items()
             if not abs(float(row.get(name, "nan")) - float(row[f"planted_{name}"])) <= near]  # type: ignore[arg-type]
    for source, destination in (("main", "elan"), ("elan", "main"), ("elan", "elan")):
        planted = float(row[f"planted_{source}_{destination}"])  # type: ignore[arg-type]
        found = data.values("rates", "mb_per_s", task=row["task"], seed=row["seed"], operation="put", source=source,
                            destination=destination, both=False)
        if len(found) != 1 or not abs(found[0] / planted - 1) <= _RATE:
            wrong.append(f"{source} to {destination}")
    return wrong
