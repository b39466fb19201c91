"""Plays a recorded workload in place of a node, in software or as a Pico's firmware: ``hypermon emulate``.

Captures that the virtual board plays (``.csv``, ``.vcd``, ``.sr``) are in ``sim/stimulus``.

Flow: workload, player, firmware, arduino
"""
