"""From a RUN to the figures of a paper: needs only the host's tools, NumPy and pyarrow, and no part of the emulator.

Flow: reading, messages, ipsc860, freezes, asciq, trains, sp2, qsnet
"""
