"""From a board to its bitstream: pads, links, the tools of each family, checks of the result, the wheel.

Flow: bitstream, top, link_pads, quarter_pads, sdram_pads, port_supply, cynthion_platform, ext_board_platforms,
    tang_nano_20k_platform, families, yosys_recipe, tools, crossing_check, skew, wheel, bare_hx1k, regeneration
"""
