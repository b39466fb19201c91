"""From pads to items: flip-flops, strobe edges, glitches, framing, and the filters upstream of the gate.

``front_ends`` receives nodes that have fewer wires than a port. ``strobe_synchronizer`` finds the edges of strobes,
``item_framer`` groups nibbles into items.

Flow: pads, ddr_input, two_wire, one_wire, byte_items, itm_items, nibble_sender, front_ends, strobe_synchronizer,
    glitch_filter, item_framer, item_timeout, nibble_mask, rate_limit, node_emulator, intake
"""
