"""The machines of four more papers, emulated, and their measurements repeated on the virtual board's recordings.

Flow: core, analysis, machines, page
"""
