"""The classic sink: event frames.

Flow: frame_builder, frame_fifo, frame_port, frame_source, classic_sink
"""
