"""What happened, counted: what came, what was lost, and how full the memories were.

Flow: tally, counters, loss, loss_narrow, census, gap_bins, high_water, reduction, activity, accounts
"""
