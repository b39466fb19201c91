"""The verdict on a rule: from the instances that were judged, and the gaps that could hide a violation."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypermon.host.analysis.stats import duration_text
from hypermon.host.contracts.lines.line import NOTHING, Sieved
from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.scopes import UNSURE, hiding, keep_inside, never
from hypermon.host.contracts.trace import ENDLESS, FAILED, INNER, MANY, OK, UNDECIDED, Trace

__all__ = ["FAILED", "INNER", "OK", "PLACES", "SILENT", "UNDECIDED", "Judged", "Place", "conclude", "count_of",
           "is_calm", "last_gap", "lost_since", "time_text"]

#: Places that are listed for each rule.
PLACES = 10
#: The cause of a doubt about a node that is named, and was not seen to write any of the events.
SILENT = "silent"
#: How a violation is told, by the kind of rule: with the time that was measured, and without one.
_VIOLATED = {
    "response": ("the answer comes after {}", "there is no answer in time"),
    "precedence": ("the last one that it needs came {} before", "none that it needs came before"),
    "absence": ("one comes after {}", "it is there"),
    "period": ("it is off by {}", ""),
    "duration": ("it lasts {}", "it does not end in time"),
    "together": ("they are {} apart", "some nodes have none in time"),
    "order": ("", "it is out of order"),
    "exclusion": ("", "another one is inside"),
}


#: Kinds about events of two keys: the others of their gaps, ``hides``, may have hidden a trigger.
_OF_TWO = ("response", "precedence", "absence")


@dataclass(frozen=True)
class Place:
    """Where a rule fails or is undecided.

    Parameters
    ----------
    why : in words. ``value_ps``: the time that was measured, from ``time_ps`` on in most kinds; None: none was.
    """

    time_ps: int
    node: int
    failed: bool
    why: str
    value_ps: int | None = None


@dataclass(frozen=True)
class Judged:
    """The verdict on a rule.

    Parameters
    ----------
    verdict : ``pass``, ``fail`` or ``undecided``.
    instances : how often the rule applied. ``failed``, ``undecided``: the numbers of places at which it failed, or is
        undecided.
    worst_ps : the worst time that was measured; None if the rule measures none.
    where : the first places. ``notes``: figures and reasons, for people.
    """

    rule: Rule
    verdict: str
    instances: int
    failed: int
    undecided: int
    worst_ps: int | None = None
    where: tuple[Place, ...] = ()
    notes: tuple[str, ...] = field(default=())


def time_text(ps: int) -> str:
    """A time of a run for people: seconds, without zeros at the end."""
    sign, ps = ("-" if ps < 0 else ""), abs(ps)
    text = f"{ps // 10**12}.{ps % 10**12:012d}".rstrip("0")
    return f"{sign}{text}{'0' * text.endswith('.')} s"


def gap_text(node: int, lo: int, hi: int, n: int, cause: str) -> str:
    """A gap in words: what is not known, and of which nodes."""
    between = f"between {time_text(lo)} and {time_text(hi)}"
    items, were = ("items", "were") if n != 1 else ("item", "was")
    # Nibbles from which events would have been framed are counted in addition to :data:`MANY`, and so is what was lost
    # before an overflow packet.
    counted = f"{n % MANY:,} {'item' if n % MANY == 1 else 'items'}"
    if cause == "framing":
        lost = f", because {counted} {'was' if n % MANY == 1 else 'were'} lost there" if n % MANY else ""
        return f"no event of node {node} can be framed {between}{lost}"
    if cause == "loss":
        return f"node {node} lost {counted}{' or more' if n >= MANY else ''} {between}"
    return {"aborted": f"node {node} began an item at {time_text(lo)} that is not complete",
            "filter": f"{n:,} {items} that may be of node {node} {were} filtered out, or discarded by a trigger, "
                      f"{between}",
            "masked": f"{n:,} {items} that may be of node {node} {were} discarded by the event mask",
            "unsure": f"more of node {node} may be missing {between} than was counted",
            "start": f"nothing is known before {time_text(hi + 1)}, where the recording of node {node} begins",
            "end": f"nothing is known after {time_text(lo - 1)}, where the recording of node {node} ends"}[cause]


def count_of(trace: Trace, question: str) -> int:
    """A single number of a query; 0 for null."""
    rows = trace.db.execute(question).fetchall()
    return int(rows[0][0] or 0) if rows else 0


def is_calm(trace: Trace) -> bool:
    """Whether nothing is missing among the events of the table ``g``, within the recording."""
    return not count_of(trace, f"select count(*) from (from g where {INNER} limit 1)")


def last_gap(trace: Trace, same_node: bool, until: str) -> str:
    """Joins each row of ``s`` with the last gap (``gap``) that began up to a time: of its node, or of all nodes."""
    if not same_node:
        return f"asof left join gm as gap on gap.lo <= {until}"
    if is_calm(trace):
        # Then it is the start of the recording, before all events: nothing to sort the events for.
        return "left join gn as gap on false"
    return f"asof left join gn as gap on gap.node = s.node and gap.lo <= {until}"


def lost_since(trace: Trace, by: str, which: str = INNER) -> None:
    """Creates ``lost_lo`` and ``lost_hi``: how many items were lost in gaps that begin, or end, up to a time.

    Parameters
    ----------
    by : the node, or a number for all. ``which``: the gaps that count.
    """
    for name, edge in (("lost_lo", "lo"), ("lost_hi", "hi")):
        trace.db.execute(f"""create or replace temp table {name} as
            select {by} as node, {edge} as t, sum(sum(n)) over (partition by {by} order by {edge} rows unbounded
                   preceding)::bigint as n from g where {which} group by {by}, {edge}""")


def conclude(trace: Trace, rule: Rule, *, hides: str | None = None, slack: int = 0, notes: Sequence[str] = (),
             instances: int | None = None, vacuous: bool = False, scoped: bool = False, beyond: bool = False,
             sieved: Sieved = NOTHING) -> Judged:
    """The verdict from the table ``judged``: ``t``, ``node``, ``value`` (null or picoseconds; the largest is the worst
    one), ``state``, and ``why``, the cause of a doubt or null, then it is the uncertainty of times.

    Parameters
    ----------
    hides : condition on ``g``: gaps that could hide a violation even if all instances are right; None: none can.
    slack : of the times, for the reasons.
    instances : if not all rows of ``judged``.
    vacuous : the rule may pass without instances.
    scoped : ``judged`` has only what is in the rule's scope already.
    beyond : gaps outside the scope could hide a violation, too.
    sieved : instances that are right, and are not in ``judged``.
    """
    if rule.scope is not None:
        if not scoped:
            keep_inside(trace, rule)
        if hides is not None and not beyond:
            hides = hiding(trace, rule, hides)
    if trace.brief:
        places = tuple(_failures(trace, rule)) if trace.sure else ()
        return Judged(rule, "fail" if places else "undecided", 0, len(places), 0, None, places)
    total, failed, unsure, worst = trace.db.execute(
        f"select count(*), count(*) filter (state = {FAILED}), count(*) filter (state = {UNDECIDED}), max(value) "
        "from judged").fetchall()[0]
    hidden = count_of(trace, f"select count(*) from g where {hides}") if hides is not None else 0
    instances = total + sieved.count if instances is None else instances
    worst = max((one for one in (worst, sieved.worst) if one is not None), default=None)
    said = list(notes)
    if rule.scope is not None and never(trace, rule):
        vacuous, instances = False, 0
        said.append("the scope of the rule does not occur for sure")
    if not instances and not vacuous and not failed:
        said.append("nothing in the run matches: 0 instances")
    if not trace.sure:
        said.append("blocks of another run are in the stream: nothing is decided")
    verdict = "pass"
    if failed and trace.sure:
        verdict = "fail"
    elif failed or unsure or hidden or not trace.sure or (not instances and not vacuous):
        verdict = "undecided"
    return Judged(rule, verdict, int(instances), int(failed), int(unsure + hidden),
                  None if worst is None else int(worst), tuple(_places(trace, rule, hides if hidden else None, slack)),
                  tuple(said))


def _places(trace: Trace, rule: Rule, hides: str | None, slack: int) -> list[Place]:
    """The first failures, then the first doubts, as far as there is room."""
    places = _failures(trace, rule)
    doubts = [Place(t, node, False, _why(trace, rule, t, node, why, slack)) for t, node, why in trace.db.execute(
        f"select t, node, why from judged where state = {UNDECIDED} order by t, node limit {PLACES}").fetchall()]
    if hides is not None:
        doubts += [Place(lo, node, False, gap_text(node, lo, hi, n, cause)) for node, lo, hi, n, cause in
                   trace.db.execute(f"select node, lo, hi, n, cause from g where {hides} order by lo, node "
                                    f"limit {PLACES}").fetchall()]
    doubts.sort(key=lambda place: (place.time_ps, place.node))
    return places[:PLACES] + doubts[:PLACES - len(places[:PLACES])]


def _failures(trace: Trace, rule: Rule) -> list[Place]:
    # The value of a quantile is not one of a place.
    value = "null" if "quantile" in rule.values else "value"
    return [Place(t, node, True, _violated(rule, took), took) for t, node, took in trace.db.execute(
        f"select t, node, {value} from judged where state = {FAILED} order by t, node limit {PLACES}").fetchall()]


def _violated(rule: Rule, value: int | None) -> str:
    measured, otherwise = _VIOLATED.get(rule.kind, ("", ""))
    said = measured.format(duration_text(value)) if value is not None and measured else otherwise
    return f"violated: {said}" if said and "quantile" not in rule.values else "violated"


def _why(trace: Trace, rule: Rule, t: int, node: int, why: str | None, slack: int) -> str:
    if slack >= ENDLESS:
        return "the times of the boards are not aligned"
    if why == UNSURE:
        return "whether it is in the scope of the rule is not certain"
    if why == SILENT:
        return "the node is not seen to write any of the events"
    if why is None:
        return f"the difference of two times is uncertain by up to {slack / 1000:,.0f} ns"
    near = {"start": f"lo <= {t}", "end": f"hi >= {t}"}.get(why)
    order = "hi desc" if why == "start" else f"case when hi >= {t} then 0 else 1 end, lo"
    row = None
    if near is not None:
        # A loss on the way to the start or the end explains as much, and sooner.
        mine = f" and node = {node}" if rule.same_node else ""
        if rule.kind in _OF_TWO:
            mine += " and not hides"        # of the events that are wanted
        row = trace.db.execute(f"select node, lo, hi, n, cause from g where {INNER} and {near}{mine} "
                               f"order by node <> {node}, {order} limit 1").fetchone()
    if row is None:
        row = trace.db.execute(f"select node, lo, hi, n, cause from g where cause = ? order by node <> {node}, {order} "
                               "limit 1", [why]).fetchone()
    return gap_text(*row) if row else "items may be missing"
