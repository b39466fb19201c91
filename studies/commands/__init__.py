"""The commands ``hypermon ipsc`` and ``hypermon machine``; entry points of ``hypermon.commands``.

Flow: ipsc, machine
"""
