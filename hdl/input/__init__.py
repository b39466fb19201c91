"""From pads to items: flip-flops, edges, glitches, framing, and the filters in front of the gate.

Flow: pads, ddr_input, synchronizer, glitch_filter, framer, item_timeout, nibble_mask, rate_limit, node_emulator, intake
"""
