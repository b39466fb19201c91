"""Counters and loss accounting: items received and lost, and fill levels of the memories.

Flow: tally, counters, outages, outages_narrow, census, gap_bins, high_water, reduction, activity, accounts
"""
