"""From a RUN to the figures of a paper: needs the host's tools, numpy and pyarrow, and nothing of the emulator.

Flow: reading, messages, ipsc860, freezes, asciq, trains, sp2, qsnet
"""
