"""From pads to items: flip-flops, strobe edges, glitches, framing, and the filters in front of the gate.

``synchronizer`` finds the edges of strobes, ``framer`` groups nibbles into items.

Flow: pads, ddr_input, synchronizer, glitch_filter, framer, item_timeout, nibble_mask, rate_limit, node_emulator, intake
"""
