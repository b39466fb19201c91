"""A workload played as a node, in software or in a microcontroller's firmware: ``hypermon emulate``.

Captures that the virtual board plays (``.csv``, ``.vcd``, ``.sr``) are in ``sim/stimulus``.

Flow: workload, player, firmware, arduino
"""
