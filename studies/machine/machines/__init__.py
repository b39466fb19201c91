"""The machines: their models, and the programs of their papers.

Flow: ipsc860, refuted, asciq, sp2, elan, qsnet, commands
"""
