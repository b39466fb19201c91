"""From pads to items: flip-flops, strobe edges, glitches, framing, and the filters in front of the gate.

``strobe_synchronizer`` finds the edges of strobes, ``item_framer`` groups nibbles into items.

Flow: pads, ddr_input, strobe_synchronizer, glitch_filter, item_framer, item_timeout, nibble_mask,
    rate_limit, node_emulator, intake
"""
