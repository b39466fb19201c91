"""From a board to its bitstream: pads, links, the tools of each family, checks of the result, the wheel.

Flow: build, top, attach, sdram_pads, supply, cynthion_platform, families, recipe, crossings, skew, bitstream_package
"""
