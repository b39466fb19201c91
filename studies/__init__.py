"""The evaluations of five papers, measured again; the distribution ``hypermon-studies``.

``ipsc`` is the machine of the paper that HYPERMON comes from, ``machine`` four more, ``scale`` a machine of many
boards. ``page`` is what their pages share. Nothing outside this folder imports it.

Flow: page, machine, ipsc, scale, commands
"""
