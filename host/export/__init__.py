"""Exports to other programs' formats.

Flow: formats, soundness, items, node_order, text_lines, tracks, brackets, ctf, fst, otf2_archive, perfetto, srzip, vcd
"""
