"""Exports to other programs' formats.

Flow: formats, soundness, items, tracks, brackets, ctf, fst, otf2_archive, perfetto, srzip, vcd
"""
