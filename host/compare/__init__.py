"""Two recordings, or two groups of them, compared: durations, latencies, periods, rates, shares, losses.

Each figure has its difference, an interval of it, and a verdict that is corrected for the number of figures. Losses and
the uncertainty of times widen the interval (docs/compare.md).

Flow: estimates, recording, measures, comparison, limits, tables, lanes, page
"""
