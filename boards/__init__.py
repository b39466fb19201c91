"""Development boards: one module each, and the registry of all.

The root contains the boards, and is the place to add one. ``model`` describes a board as data; ``pinout`` draws it;
``clocks``, ``toolchain`` and ``measure`` build its bitstreams and measure how fast they are.

Flow: registry, arty_a7, butterstick, colorlight, cynthion, ecp5_evn, ecpix5, ice40_hx8k, icebreaker, icepi_zero,
    icesugar_pro, orangecrab, tang_nano, tang_primer, ulx3s, model, pinout, clocks, toolchain, measure
"""
