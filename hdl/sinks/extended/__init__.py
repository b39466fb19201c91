"""The extended sink encodes items as short codes, in blocks.

Flow: lineup, halver, expander, event_mask, trigger, trigger_out, discards, encoder, packer, word_packer,
    compact_sink, compact_source
"""
