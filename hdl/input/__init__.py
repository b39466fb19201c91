"""From pads to items: flip-flops, edges, glitches, framing, and what is kept out before the gate.

Flow: pads, ddr_input, synchronizer, glitch, framer, item_timeout, item_filter, limiter, emulator, intake
"""
