"""The trigger and the event mask: which items are kept.

Flow: event_mask, trigger, trigger_out, discards
"""
