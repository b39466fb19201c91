"""Contracts on recordings: rules about a RUN's events, judged pass, fail or undecided.

A RUN does not contain all that happened: items were lost, stamps are uncertain, and nothing is known of the time before
the start and after the end. It therefore represents all complete traces that agree with it. A rule passes if it holds
in all of these traces, fails if it holds in none, and is undecided otherwise. Where this package can compute only
bounds, and these leave a doubt, the verdict is *undecided* (docs/check.md).

Flow: units, rules, lines, trace, events, doubts, scopes, judged, responses, sequences, rates,
    portions, spans, verdicts, judge, suspects, growing
"""
