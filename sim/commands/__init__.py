"""The commands of ``hypermon`` that play something on the virtual board; entry points of ``hypermon.commands``.

Flow: wired, sim, emulate
"""
