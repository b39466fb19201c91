"""The extended sink encodes items as short codes, in blocks.

Flow: encoder, packer, word_packer, compact_sink, compact_source
"""
