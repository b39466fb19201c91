"""Exports to other programs' formats.

Flow: formats, format, soundness, items, nibbles_csv, frames, events_csv, logs_csv, text_lines, tracks, brackets,
    node_order, ctf, vcd, fst, otf2_archive, packets, perfetto, srzip, sinks
"""
