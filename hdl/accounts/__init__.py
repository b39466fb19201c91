"""Counters and loss accounting: items received and lost, and fill levels of the memories.

Flow: tally, counters, loss_records, loss_records_narrow, link_accounts, census, gap_bins, high_water, reduction, marks,
    activity, accounts
"""
