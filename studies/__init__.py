"""The evaluations of five papers, measured again; the distribution ``hypermon-studies``.

``ipsc`` is the machine of the paper that HYPERMON comes from, ``machine`` four more, ``scale`` a machine of many
boards. ``figures`` draws for their pages, ``compact`` makes the drawings small. Nothing outside this folder imports it.

Flow: compact, figures, machine, ipsc, scale, commands
"""
