"""Judges all rules of a file on a RUN."""

from collections.abc import Callable
from pathlib import Path

import duckdb
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.contracts.events import with_state
from hypermon.host.contracts.judged import Judged
from hypermon.host.contracts.rates import period, rate
from hypermon.host.contracts.responses import absence, precedence, response
from hypermon.host.contracts.rules import Rule, Rules, load_rules
from hypermon.host.contracts.sequences import order, together
from hypermon.host.contracts.spans import duration, exclusion, share
from hypermon.host.contracts.trace import Trace, UnfitError
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.errors import HypermonError

__all__ = ["JUDGES", "fitted", "judge", "judge_rules"]

#: The function that judges each kind of rule.
JUDGES: dict[str, Callable[[Trace, Rule], Judged]] = {
    "response": response, "absence": absence, "precedence": precedence, "period": period, "duration": duration,
    "rate": rate, "exclusion": exclusion, "together": together, "order": order, "share": share}


def judge(run: DecodedRun, path: str | Path) -> list[Judged]:
    """Judges the rules of a file, in its order.

    Raises
    ------
    InputError
        if the file is not valid, or a rule does not fit the RUN: an event that does not exist, a wrong condition. Then
        no rule is judged.
    """
    return judge_rules(run, load_rules(path))


def judge_rules(run: DecodedRun, rules: Rules) -> list[Judged]:
    """Judges rules that were loaded."""
    with opened_trace(run) as (trace, dictionary):
        found = fitted(trace, rules, dictionary)
        trace.share(found)
        return [_judged(trace, rules, rule) for rule in found]


def fitted(trace: Trace, rules: Rules, dictionary: Dictionary | None) -> list[Rule]:
    """The rules with the events of the states that they name.

    Raises
    ------
    InputError
        if one does not fit the trace.
    """
    found = []
    for rule in rules.rules:
        try:
            found.append(with_state(rule, dictionary))
            for key, events in found[-1].events.items():
                for event in events:
                    trace.check(found[-1], key, event)
            for event in found[-1].scope.events if found[-1].scope else ():
                trace.check(found[-1].unkeyed(), "scope", event)
        except UnfitError as error:
            raise rules.wrong(rule, error.key, str(error)) from None
    return found


def _judged(trace: Trace, rules: Rules, rule: Rule) -> Judged:
    trace.fresh = rule.fresh_start
    try:
        return JUDGES[rule.kind](trace, rule)
    except UnfitError as error:
        raise rules.wrong(rule, error.key, str(error)) from None
    except duckdb.OutOfMemoryException as error:
        raise HypermonError(f"{rule.name}: more memory or disk is needed: {str(error).splitlines()[0]}") from None
