"""What happened, counted: what came, what was lost, and how full the memories were.

Flow: tally, counters, loss, serial_loss, census, gaps, high_water, reduction, activity, accounts
"""
