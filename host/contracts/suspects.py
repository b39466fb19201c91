"""Whether the events that are kept for a rule can violate it at all: one cheap query, instead of a judge's many.

The query ignores losses and unknown times. These can only excuse a violation, so it overlooks none. The judge decides.
"""

from collections.abc import Mapping

from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.trace import FAR

__all__ = ["suspicion"]


def suspicion(rule: Rule, tables: Mapping[str, str], slack: int, known: int, fresh: bool) -> str | None:
    """A query that has a row if a violation is possible; None: there is no such query, and it always is.

    Parameters
    ----------
    tables : of the rule's events, by the names that its judge uses.
    slack : of the times of its nodes. ``known``: the latest time of which anything is known.
    fresh : nothing came before the events.
    """
    if rule.kind == "period":
        every, tolerance = rule.ps("every") or 0, rule.ps("tolerance") or 0
        by = "partition by node " if rule.same_node else ""
        return (f"select 1 from (select t - lag(t) over ({by}order by t, node) as d from {tables['a']}) "
                f"where abs(d - {every}) > {tolerance + slack} limit 1")
    if rule.kind in ("response", "precedence"):
        least, most = rule.ps("min") or 0, rule.ps("max" if rule.kind == "response" else "within")
        return _unanswered(rule, tables, (max(least - slack, 1), (FAR // 4 if most is None else most) + slack), known)
    if rule.kind == "absence" and "after" in rule.events:
        return (f"select 1 from {tables['a']} as a asof join {tables['b']} as b on a.key = b.key and b.t >= a.t "
                f"where b.t <= a.t + {rule.ps('within')} limit 1")
    if rule.kind == "absence":
        return f"select 1 from {tables['a']} limit 1"
    if rule.kind == "order":
        by = ", ".join([*(["key"] if rule.key else []), *(["node"] if rule.same_node else [])])
        part, first = f"partition by {by} " if by else "", "pos > 0" if fresh else "false"
        return (f"select 1 from (select pos, lag(pos) over ({part}order by t, node) as before from {tables['a']}) "
                f"where coalesce(pos <> (before + 1) % {len(rule.events['events'])}, {first}) limit 1")
    if rule.kind == "duration":
        return _out_of_range(rule, tables, slack, known)
    if rule.kind == "rate" and "min" not in rule.values and rule.values["max"]:
        by = "partition by node " if rule.same_node else ""
        return (f"select 1 from (select t, lead(t, {rule.ps('max')}) over ({by}order by t, node) as beyond from "
                f"{tables['a']}) where beyond - t < {rule.ps('per')} limit 1")
    return None


def _unanswered(rule: Rule, tables: Mapping[str, str], reach: tuple[int, int], known: int) -> str:
    """Events without another one in reach after them, or before them."""
    (low, high), same = reach, "a.key = b.key" + (" and a.node = b.node" if rule.same_node else "")
    if rule.kind == "response":
        return (f"select 1 from {tables['a']} as a asof left join {tables['b']} as b on {same} "
                f"and b.t >= a.t + {low} where a.t + {high} <= {known} and coalesce(b.t > a.t + {high}, true) limit 1")
    return (f"select 1 from {tables['a']} as a asof left join {tables['b']} as b on {same} "
            f"and b.t <= a.t - {low} where coalesce(b.t < a.t - {high}, true) limit 1")


def _out_of_range(rule: Rule, tables: Mapping[str, str], slack: int, known: int) -> str:
    """Spans in spans, and those that are too long, or too short."""
    by = ", ".join(["key", *(["node"] if rule.same_node else [])])
    least, most = rule.ps("min") or 0, rule.ps("max")
    long = "false" if most is None else f"coalesce(later, {known} + 1) - t > {most + slack}"
    return (f"select 1 from (select t, part, lead(t) over own as later, lead(part) over own as inner_part from "
            f"(select t, node, key, 1 as part from {tables['begins']} union all "
            f"select t, node, key, 0 from {tables['ends']}) "
            f"window own as (partition by {by} order by t, part, node)) "
            f"where part = 1 and (inner_part = 1 or {long} or coalesce(later - t < {least - slack}, false)) limit 1")
