"""Contracts by brute force: a rule on a complete trace, and the complete traces that agree with a recorded one.

It shares no code with the judges. Times are small numbers. An item is (time, node, event, key); the times of a node's
items differ. A recorded trace states stamps: an item came up to ``slack`` after its stamp.
"""

import math
import random
from dataclasses import dataclass
from itertools import pairwise, product

__all__ = ["EVENTS", "HOLDS", "Recorded", "completion", "made_up", "possible"]

EVENTS = "abc"


@dataclass
class Recorded:
    """A trace that was recorded from ``start`` to ``end``. ``losses``: node, from, to, at most how many items."""

    items: list
    losses: list
    start: int
    end: int
    nodes: int
    slack: int


def made_up(rng: random.Random, events: str = EVENTS) -> Recorded:
    """A small trace: at most 12 items and 3 losses."""
    end, nodes = rng.choice([8, 15, 30]), rng.choice([1, 2, 2, 3])
    items, weights = {}, [rng.random() ** 2 + 0.05 for _ in events]
    regular = rng.random() < 0.5
    for _ in range(rng.randint(0, 12)):
        node = rng.randrange(nodes)
        if regular:
            # Something like a program: the events take turns.
            own = [one for (_, at), one in items.items() if at == node]
            event, key = events[len(own) % len(events)], len(own) // len(events) % 2
            late = max([t for t, at in items if at == node], default=0) + rng.randint(1, 4)
            if late <= end:
                items[late, node] = event, key
        else:
            items[rng.randint(0, end), node] = rng.choices(events, weights)[0], rng.randrange(2)
    losses = []
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        lo = rng.randint(0, end)
        node, hi, lost = rng.randrange(nodes), min(lo + rng.choice([0, 1, 2, 3]), end), rng.choice([1, 1, 2])
        # As many as there were: the stamps of a node differ.
        free = [t for t in range(lo, hi + 1) if (t, node) not in items]
        lost = min(lost, len(free) - sum(own[3] for own in losses if own[0] == node and lo <= own[2] and own[1] <= hi))
        if lost > 0:
            losses.append((node, lo, hi, lost))
    return Recorded([(t, node, *of) for (t, node), of in sorted(items.items())], losses, 0, end, nodes,
                    rng.choice([0, 0, 1, 2]))


def completion(rng: random.Random, trace: Recorded, events: str = EVENTS) -> list | None:
    """One complete trace: (time, stamp, node, event, key), in order; None if the lost items do not fit."""
    stamps = {(t, node): of for t, node, *of in trace.items}

    def add(node, lo, hi):
        at = (rng.randint(lo, hi), node)
        if at not in stamps:
            stamps[at] = [rng.choice(events), rng.randrange(3)]

    for node, lo, hi, most in trace.losses:
        for _ in range(rng.randint(0, most)):
            add(node, lo, hi)
    if rng.random() < 0.3:
        _continued(rng, trace, stamps)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        add(rng.randrange(trace.nodes), trace.start - 4, trace.start - 1)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        add(rng.randrange(trace.nodes), trace.end + 1, trace.end + 5)
    shift = rng.choice([0.0, 0.5, 1.0])
    found = []
    for (stamp, node), of in stamps.items():
        late = rng.choice([0.0, 1.0, rng.random()]) if rng.random() < 0.7 else shift
        found.append((stamp + trace.slack * late, stamp, node, *of))
    # The order of equal times is anybody's guess, but a node's items come in the order of their stamps.
    rng.shuffle(found)
    found.sort(key=lambda item: item[0])
    for node in range(trace.nodes):
        own = [item[1] for item in found if item[2] == node]
        if own != sorted(own):
            return None
    for one, other in pairwise(found):
        if one[0] == other[0] and one[2] == other[2]:
            return None
    return found


def _continued(rng, trace, stamps):
    """Adds what a program whose events take turns may have done before the recording, and may do after it."""
    own = sorted(stamps.items())
    for node in range(trace.nodes):
        for key in range(2):
            seen = [event for (_, at), (event, one) in own if at == node and one == key]
            before = EVENTS[:EVENTS.index(seen[0])] if seen and seen[0] in EVENTS else rng.choice(["", "b"])
            after = EVENTS[EVENTS.index(seen[-1]) + 1:] if seen and seen[-1] in EVENTS else rng.choice(["", "a"])
            for k, event in enumerate(before if rng.random() < 0.8 else ""):
                stamps[trace.start - 6 + 2 * k + key, node] = [event, key]
            for k, event in enumerate(after if rng.random() < 0.8 else ""):
                stamps[trace.end + 1 + 2 * k + key, node] = [event, key]


def fits(rule, one, other):
    """Two items belong together."""
    return (not rule.get("key") or one[4] == other[4]) and (not rule.get("same_node") or one[2] == other[2])


def inside(trace, item):
    return trace.start <= item[1] <= trace.end


def follows(rule, full, i, j, least, most):
    """Item j comes after item i, from least to most later."""
    one, other = full[i], full[j]
    if i == j or not fits(rule, one, other) or (one[2] == other[2] and j < i):
        return False
    return least <= other[0] - one[0] <= most


def within(rule, trace, full):
    """For each item: the number of the part of the scope that it is in, or None; and from when to when each part is."""
    scope = rule.get("scope")
    if scope is None:
        return [0] * len(full), [(None, -math.inf, math.inf)]
    lanes = range(trace.nodes) if scope.get("same_node") else [None]
    numbers, parts, now = [], [], {}
    for lane in lanes:
        now[lane] = None
        if "from" not in scope:
            parts.append([lane, -math.inf, math.inf])
            now[lane] = len(parts) - 1
    for x in full:
        lane = x[2] if scope.get("same_node") else None
        if inside(trace, x) and x[3] == scope.get("from") and now[lane] is None:
            parts.append([lane, x[0], math.inf])
            now[lane] = len(parts) - 1
        if inside(trace, x) and x[3] == scope.get("to") and now[lane] is not None:
            parts[now[lane]][2] = x[0]
            now[lane] = None
        numbers.append(now[lane])
    return numbers, parts


def numbered(rule, trace, full):
    """By the identity of each item: the number of the part of the scope that it is in, or None."""
    return dict(zip(map(id, full), within(rule, trace, full)[0], strict=True))


def response(rule, trace, full):
    most, scoped = rule.get("max", math.inf), within(rule, trace, full)[0]
    return all(scoped[i] is None
               or any(follows(rule, full, i, j, rule.get("min", 0), most) for j, b in enumerate(full) if b[3] == "b")
               for i, a in enumerate(full) if a[3] == "a" and inside(trace, a))


def precedence(rule, trace, full):
    scoped = within(rule, trace, full)[0]
    most = rule.get("within", math.inf)
    return all(scoped[i] is None or any(follows(rule, full, j, i, 0, most) for j, b in enumerate(full)
                   if b[3] == "b") for i, a in enumerate(full) if a[3] == "a" and inside(trace, a))


def absence(rule, trace, full):
    scoped = within(rule, trace, full)[0]
    if "between" in rule:
        for i, a in enumerate(full):
            if a[3] != "a" or not inside(trace, a) or scoped[i] is None:
                continue
            before = [x for x in full[:i] if x[3] in "bc" and fits(rule, x, a)]
            after = [x for x in full[i + 1:] if x[3] == "c" and fits(rule, x, a)]
            if before and before[-1][3] == "b" and after:
                return False
        return True
    if "after" in rule:
        return not any(follows(rule, full, i, j, 0, rule["within"]) for i, b in enumerate(full)
                       if b[3] == "b" and inside(trace, b) and scoped[i] is not None
                       for j, a in enumerate(full) if a[3] == "a")
    return not any(a[3] == "a" and inside(trace, a) and scoped[i] is not None for i, a in enumerate(full))


def lanes(rule, trace, full, events="a"):
    """The items of the recording, of each node, or of all."""
    own = [x for x in full if x[3] in events and inside(trace, x)]
    return [[x for x in own if x[2] == node] for node in range(trace.nodes)] if rule["same_node"] else [own]


def period(rule, trace, full):
    number = numbered(rule, trace, full)
    return all(abs(b[0] - a[0] - rule["every"]) <= rule["tolerance"]
               for own in lanes(rule, trace, full) for a, b in pairwise(own)
               if number[id(a)] is not None and number[id(a)] == number[id(b)])


def rate(rule, trace, full):
    if rule.get("scope") is not None:
        return rate_in_parts(rule, trace, full)
    seen = {x[1] for x in trace.items if x[2] == "a"}
    for node, own in enumerate(lanes(rule, trace, full)):
        times = [x[0] for x in own]
        if "max" in rule and any(sum(t <= u < t + rule["per"] for u in times) > rule["max"] for t in times):
            return False
        if rule.get("min") and (node in seen or not rule["same_node"]):
            edges = [trace.start, *times, trace.end]
            for i, t in enumerate(edges):
                until = edges[i + rule["min"]] if i + rule["min"] < len(edges) else trace.end
                if until - t > rule["per"]:
                    return False
    return True


def rate_in_parts(rule, trace, full):
    numbers, parts = within(rule, trace, full)
    number = dict(zip(map(id, full), numbers, strict=True))
    seen = {x[1] for x in trace.items if x[2] == "a"}
    for node, every in enumerate(lanes(rule, trace, full)):
        for part, (lane, begin, end) in enumerate(parts):
            if lane is not None and rule["same_node"] and lane != node:
                continue
            times = [x[0] for x in every if number[id(x)] == part]
            if "max" in rule and any(sum(t <= u < t + rule["per"] for u in times) > rule["max"] for t in times):
                return False
            edges = [max(trace.start, begin), *times, min(trace.end, end)]
            if rule.get("min") and (node in seen or not rule["same_node"]):
                for i, t in enumerate(edges):
                    until = edges[i + rule["min"]] if i + rule["min"] < len(edges) else edges[-1]
                    if until - t > rule["per"]:
                        return False
    return True


def duration(rule, trace, full):
    scoped = numbered(rule, trace, full)
    groups: dict = {}
    for x in full:
        if x[3] in "ab":
            groups.setdefault((x[2] if rule["same_node"] else None, x[4] if rule.get("key") else None), []).append(x)
    took = []
    for own in groups.values():
        stack = []
        for x in own:
            if x[3] == "a":
                stack.append(x)
            elif stack:
                begin = stack.pop()
                if (inside(trace, begin) or inside(trace, x)) and scoped[id(begin)] is not None:
                    took.append(x[0] - begin[0])
        took += [math.inf for begin in stack if inside(trace, begin) and scoped[id(begin)] is not None]
    if "quantile" in rule:
        rank = max(math.ceil(rule["quantile"] * len(took)), 1)
        return not took or sorted(took)[rank - 1] <= rule["max"]
    return all(rule.get("min", 0) <= d <= rule.get("max", math.inf) for d in took)


def states(trace, full, begin, end, node, rng):
    """From when to when a node is inside, within the recording."""
    own = [x for x in full if x[3] in (begin, end) and x[2] == node and inside(trace, x)]
    now = trace.start if own and own[0][3] == end and rng.random() < 0.5 else None
    found = []
    for x in own:
        if x[3] == begin and now is None:
            now = x[0]
        elif x[3] == end and now is not None:
            found.append((now, x[0]))
            now = None
    return found + ([(now, trace.end)] if now is not None else [])


def share(rule, trace, full, rng):
    for node in rule.get("nodes", range(trace.nodes)):
        if not any(x[3] in "ab" and x[2] == node and inside(trace, x) for x in full):
            continue
        spans = [(max(begin, trace.start), min(end, trace.end)) for lane, begin, end in within(rule, trace, full)[1]
                 if lane in (None, node)]
        whole = sum(max(b - a, 0) for a, b in spans)
        if not whole:
            continue
        part = sum(max(min(b, d) - max(a, c), 0) for a, b in states(trace, full, "a", "b", node, rng)
                   for c, d in spans) / whole
        if not rule.get("min", 0) - 1e-9 <= part <= rule.get("max", 1) + 1e-9:
            return False
    return True


def exclusion(rule, trace, full, rng):
    if rule["groups"] == 1:
        groups = [states(trace, full, "a", "b", node, rng) for node in range(trace.nodes)]
    else:
        # Group 0 is of node 0, and group 1 of the others.
        groups = [states(trace, full, "a", "b", 0, rng),
                  [span for node in range(1, trace.nodes) for span in states(trace, full, "a", "b", node, rng)]]
    return not any(max(p[0], q[0], begin) < min(p[1], q[1], end) for i, one in enumerate(groups)
                   for other in groups[i + 1:] for p in one for q in other
                   for _, begin, end in within(rule, trace, full)[1])


def together(rule, trace, full):
    scoped = numbered(rule, trace, full)
    if rule.get("key"):
        for key in {x[4] for x in full if x[3] == "a" and inside(trace, x)}:
            turn = [x for x in full if x[3] == "a" and x[4] == key]
            there = [x for x in turn if inside(trace, x)]
            if all(scoped[id(x)] is None for x in there):
                continue
            # Those of nodes that are missing may have come before the recording, or may come after it.
            others = [[x for x in turn if x[2] == node] for node in set(range(trace.nodes)) - {x[2] for x in there}]
            times = [[x[0] for x in (*there, *more)] for more in product(*others)]
            if not any(max(own) - min(own) <= rule["within"] for own in times):
                return False
        return True
    own = [[x for x in full if x[3] == "a" and x[2] == node and x[1] >= trace.start] for node in range(trace.nodes)]
    for k in range(max(map(len, own))):
        turn = [lane[k] if k < len(lane) else None for lane in own]
        if not any(x is not None and inside(trace, x) and scoped[id(x)] is not None for x in turn):
            continue
        if None in turn or max(x[0] for x in turn) - min(x[0] for x in turn) > rule["within"]:
            return False
    return True


def order(rule, trace, full):
    if rule.get("scope") is not None:
        return order_in_parts(rule, trace, full)
    groups: dict = {}
    for x in full:
        groups.setdefault((x[2] if rule["same_node"] else None, x[4] if rule.get("key") else None), []).append(x)
    for own in groups.values():
        if (inside(trace, own[0]) and own[0][3] != "a") or (inside(trace, own[-1]) and own[-1][3] != "c"):
            return False
        for one, other in pairwise(own):
            # What is before a sequence that begins in the recording, or after one that ends in it, is not judged.
            judged = (inside(trace, one) and inside(trace, other)) or (inside(trace, one) and one[3] != "c") or (
                inside(trace, other) and other[3] != "a")
            if judged and one[3] + other[3] not in ("ab", "bc", "ca"):
                return False
    return True


def order_in_parts(rule, trace, full):
    """Each event of the scope follows its predecessor; the last one of all is the last of the list."""
    scoped = numbered(rule, trace, full)
    groups: dict = {}
    for x in full:
        if x[3] in "abc":
            groups.setdefault((x[2] if rule["same_node"] else None, x[4] if rule.get("key") else None), []).append(x)
    for own in groups.values():
        for one, other in zip([None, *own], [*own, None], strict=True):
            right = (one[3] if one else "c") + (other[3] if other else "a") in ("ab", "bc", "ca")
            if other is not None and inside(trace, other):
                # What is before a sequence that begins in the recording, or after one that ends in it, is not judged.
                began = other[3] == "a" and not (one is not None and inside(trace, one))
                if scoped[id(other)] is not None and not right and not began:
                    return False
            elif one is not None and inside(trace, one) and scoped[id(one)] is not None and not right and one[3] != "c":
                return False
    return True


#: Whether a rule holds on a complete trace.
HOLDS = {"response": response, "precedence": precedence, "absence": absence, "period": period, "rate": rate,
         "duration": duration, "share": share, "exclusion": exclusion, "together": together, "order": order}


def possible(rng, kind, plain, recorded, events, completions):
    """The truth values of a rule in some complete traces."""
    found = set()
    for _ in range(completions):
        full = completion(rng, recorded, events)
        if full is None:
            continue
        more = (rng,) if kind in ("share", "exclusion") else ()
        found.add(HOLDS[kind](plain, recorded, full, *more))
        if len(found) == 2:
            break
    return found
