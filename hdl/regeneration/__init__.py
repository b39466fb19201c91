"""Regeneration board: eight nodes on two pairs; the transmitter beside them, the receiver upstream of the intake.

``docs/regeneration.md`` describes the link.

Flow: link_code, link_fronts, item_silence, moment_gate, byte_coder, link_counts, frame_serializer, transmitter,
    line_aligner, frame_checker, moment_parser, replay, link_life, link_losses, receiver, links, ports, wired_boards
"""
