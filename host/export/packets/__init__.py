"""The packets of a trace for Perfetto.

Flow: wire_format, writer
"""
