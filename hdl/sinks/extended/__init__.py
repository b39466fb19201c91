"""The extended sink encodes items as short codes, in blocks.

Flow: lineup, halver, expander, event_mask, trigger, discards, encoder, packer, compact_sink, compact_source
"""
