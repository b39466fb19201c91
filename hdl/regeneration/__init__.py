"""Regeneration board: eight nodes on two pairs; the transmitter beside them, the receiver in front of the intake.

``docs/regeneration.md`` describes the link.

Flow: link_code, moment_gate, byte_coder, link_counts, frame_serializer, transmitter,
    line_aligner, frame_checker, moment_parser, replay, link_losses, receiver
"""
