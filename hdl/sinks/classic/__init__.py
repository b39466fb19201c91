"""The classic sink: event frames.

Flow: frame_builder, frame_fifo, frame_port, frames_source, classic_sink
"""
