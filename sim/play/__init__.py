"""A workload played as a node, in software or in a microcontroller's firmware.

Flow: workload, player, firmware
"""
