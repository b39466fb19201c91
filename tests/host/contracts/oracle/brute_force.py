"""Contracts by brute force: the violations in a complete trace, and the traces that agree with a recorded one.

It shares no code with the judges. Each kind of rule is a generator of the violations in a complete trace: how grave
each is, from 1 on. The traces are drawn by :mod:`.completions`.
"""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise, product

from tests.host.contracts.oracle.completions import EVENTS, Completion, Recorded, climbed, completion, made_up

__all__ = ["EVENTS", "VIOLATIONS", "Recorded", "completion", "made_up", "possible", "within"]


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
        # What came before the recording is in no scope, not even in one from its start.
        numbers.append(now[lane] if x[1] >= trace.start else None)
    return numbers, parts


def numbered(rule, trace, full):
    """By the identity of each item: the number of the part of the scope that it is in, or None."""
    return dict(zip(map(id, full), within(rule, trace, full)[0], strict=True))


def response(rule, trace, full):
    most, scoped = rule.get("max", math.inf), within(rule, trace, full)[0]
    for i, a in enumerate(full):
        if a[3] == "a" and inside(trace, a) and scoped[i] is not None and not any(
                follows(rule, full, i, j, rule.get("min", 0), most) for j, b in enumerate(full) if b[3] == "b"):
            yield 1


def precedence(rule, trace, full):
    most, scoped = rule.get("within", math.inf), within(rule, trace, full)[0]
    for i, a in enumerate(full):
        if a[3] == "a" and inside(trace, a) and scoped[i] is not None and not any(
                follows(rule, full, j, i, 0, most) for j, b in enumerate(full) if b[3] == "b"):
            yield 1


def absence(rule, trace, full):
    scoped = within(rule, trace, full)[0]
    if "between" in rule:
        for i, a in enumerate(full):
            if a[3] != "a" or not inside(trace, a) or scoped[i] is None:
                continue
            before = [x for x in full[:i] if x[3] in "bc" and fits(rule, x, a)]
            after = [x for x in full[i + 1:] if x[3] == "c" and fits(rule, x, a)]
            if before and before[-1][3] == "b" and after:
                yield 1
    elif "after" in rule:
        for i, b in enumerate(full):
            if b[3] == "b" and inside(trace, b) and scoped[i] is not None:
                for j, a in enumerate(full):
                    if a[3] == "a" and follows(rule, full, i, j, 0, rule["within"]):
                        yield 1
    else:
        for i, a in enumerate(full):
            if a[3] == "a" and inside(trace, a) and scoped[i] is not None:
                yield 1


def lanes(rule, trace, full, events="a"):
    """The items of the recording, of each node, or of all."""
    own = [x for x in full if x[3] in events and inside(trace, x)]
    return [[x for x in own if x[2] == node] for node in range(trace.nodes)] if rule["same_node"] else [own]


def period(rule, trace, full):
    number = numbered(rule, trace, full)
    for own in lanes(rule, trace, full):
        for a, b in pairwise(own):
            beyond = abs(b[0] - a[0] - rule["every"]) - rule["tolerance"]
            if beyond > 0 and number[id(a)] is not None and number[id(a)] == number[id(b)]:
                yield 1 + beyond


def rate(rule, trace, full):
    if rule.get("scope") is not None:
        yield from rate_in_parts(rule, trace, full)
        return
    seen = {x[1] for x in trace.items if x[2] == "a"}
    for node, own in enumerate(lanes(rule, trace, full)):
        times = [x[0] for x in own]
        if "max" in rule:
            yield from too_many(rule, times)
        if rule.get("min") and (node in seen or not rule["same_node"]):
            yield from too_few(rule, full, full.first, times, full.last)


def too_many(rule, times):
    for t in times:
        beyond = sum(t <= u < t + rule["per"] for u in times) - rule["max"]
        if beyond > 0:
            yield beyond


def too_few(rule, full, begin, times, end):
    edges = [begin, *(min(max(t, full.first), full.last) for t in times), end]
    for i, t in enumerate(edges):
        until = edges[i + rule["min"]] if i + rule["min"] < len(edges) else edges[-1]
        if until - t > rule["per"]:
            yield 1 + until - t - rule["per"]


def rate_in_parts(rule, trace, full):
    numbers, parts = within(rule, trace, full)
    number = dict(zip(map(id, full), numbers, strict=True))
    seen = {x[1] for x in trace.items if x[2] == "a"}
    for node, every in enumerate(lanes(rule, trace, full)):
        for part, (lane, begin, end) in enumerate(parts):
            if lane is not None and rule["same_node"] and lane != node:
                continue
            times = [x[0] for x in every if number[id(x)] == part]
            if "max" in rule:
                yield from too_many(rule, times)
            if rule.get("min") and (node in seen or not rule["same_node"]):
                yield from too_few(rule, full, max(full.first, begin), times, min(full.last, end))


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
        right = sum(d <= rule["max"] for d in took)
        if took and right < rank:
            yield rank - right
        return
    for d in took:
        beyond = max(rule.get("min", 0) - d, d - rule.get("max", math.inf))
        if beyond > 0:
            yield 1 + min(beyond, trace.end)


def states(trace, full, begin, end, node):
    """From when to when a node is inside, within the recording."""
    own = [x for x in full if x[3] in (begin, end) and x[2] == node and inside(trace, x)]
    now = full.first if own and own[0][3] == end and node in full.started else None
    found = []
    for x in own:
        if x[3] == begin and now is None:
            now = x[0]
        elif x[3] == end and now is not None:
            found.append((now, x[0]))
            now = None
    return found + ([(now, full.last)] if now is not None else [])


def share(rule, trace, full):
    for node in rule.get("nodes", range(trace.nodes)):
        if not any(x[3] in "ab" and x[2] == node and inside(trace, x) for x in full):
            continue
        spans = [(max(begin, full.first), min(end, full.last)) for lane, begin, end in within(rule, trace, full)[1]
                 if lane in (None, node)]
        whole = sum(max(b - a, 0) for a, b in spans)
        if not whole:
            continue
        if rule.get("fresh"):
            full = Completion(full, set(), full.first, full.last)
        part = sum(max(min(b, d) - max(a, c), 0) for a, b in states(trace, full, "a", "b", node)
                   for c, d in spans) / whole
        beyond = max(rule.get("min", 0) - part, part - rule.get("max", 1))
        if beyond > 1e-9:
            yield 1 + beyond


def exclusion(rule, trace, full):
    if rule["groups"] == 1:
        groups = [states(trace, full, "a", "b", node) for node in range(trace.nodes)]
    else:
        # Group 0 is of node 0, and group 1 of the others.
        groups = [states(trace, full, "a", "b", 0),
                  [span for node in range(1, trace.nodes) for span in states(trace, full, "a", "b", node)]]
    scopes = within(rule, trace, full)[1]
    for one, other in combinations(groups, 2):
        for p, q, (_, begin, end) in product(one, other, scopes):
            over = min(p[1], q[1], end) - max(p[0], q[0], begin)
            if over > 0:
                yield 1 + over


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
            spread = min((max(own) - min(own) for own in times), default=math.inf)
            if spread > rule["within"]:
                yield 1 + min(spread - rule["within"], trace.end)
        return
    own = [[x for x in full if x[3] == "a" and x[2] == node and x[1] >= trace.start] for node in range(trace.nodes)]
    for k in range(max(map(len, own))):
        turn = [lane[k] if k < len(lane) else None for lane in own]
        if not any(x is not None and inside(trace, x) and scoped[id(x)] is not None for x in turn):
            continue
        there = [x[0] for x in turn if x is not None]
        beyond = max(there) - min(there) - rule["within"]
        if len(there) < len(turn) or beyond > 0:
            yield 1 + max(beyond, 0)


def order(rule, trace, full):
    if rule.get("scope") is not None:
        yield from order_in_parts(rule, trace, full)
        return
    groups: dict = {}
    for x in full:
        groups.setdefault((x[2] if rule["same_node"] else None, x[4] if rule.get("key") else None), []).append(x)
    for own in groups.values():
        if (inside(trace, own[0]) and own[0][3] != "a") or (inside(trace, own[-1]) and own[-1][3] != "c"):
            yield 1
        for one, other in pairwise(own):
            # What is before a sequence that begins in the recording, or after one that ends in it, is not judged.
            judged = (inside(trace, one) and inside(trace, other)) or (inside(trace, one) and one[3] != "c") or (
                inside(trace, other) and other[3] != "a")
            if judged and one[3] + other[3] not in ("ab", "bc", "ca"):
                yield 1


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
                    yield 1
            elif one is not None and inside(trace, one) and scoped[id(one)] is not None and not right and one[3] != "c":
                yield 1


#: The violations of a rule in a complete trace.
VIOLATIONS: dict[str, Callable[[dict, Recorded, Completion], Iterator[float]]] = {
    "response": response, "precedence": precedence, "absence": absence, "period": period, "rate": rate,
    "duration": duration, "share": share, "exclusion": exclusion, "together": together, "order": order}


def possible(rng, kind, plain, recorded, events, completions, steps=0):
    """The truth values of a rule in some complete traces: drawn at random, then found by climbing in some steps."""
    found, violations = set(), VIOLATIONS[kind]
    for _ in range(completions):
        full = completion(rng, recorded, events)
        if full is None:
            continue
        found.add(next(violations(plain, recorded, full), None) is None)
        if len(found) == 2:
            return found
    return climbed(rng, lambda full: sum(violations(plain, recorded, full)), recorded, events, steps, found)
