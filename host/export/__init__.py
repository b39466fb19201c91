"""Other programs' formats.

Flow: export, soundness, items, story, spans, ctf, fst, otf2_archive, perfetto, srzip, vcd
"""
