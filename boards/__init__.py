"""Development boards: one module each, and the registry of all.

The root holds what one looks for and what one adds. ``model`` says what a board is, as data; ``pinout`` draws it;
``clocks``, ``toolchain`` and ``measure`` make bitstreams of it and say how fast they are.

Flow: registry, arty_a7, butterstick, cynthion, ecp5_evn, ecpix5, ice40_hx8k, icebreaker, orangecrab, tang_nano,
    tang_primer, ulx3s, model, pinout, clocks, toolchain, measure
"""
