"""Times of a run's events in memory, in order, and what they show without a query.

Most instances of a rule are right beyond doubt: they are far from all gaps, and within all limits by more than times
are uncertain. These are found by merging lines, counted, and sorted out. The judges' queries are about the rest.

Flow: line, store, sieves, answers, pairs
"""
