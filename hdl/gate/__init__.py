"""Decides which items are admitted, and holds them. Only ``drop_gate`` drops items.

Flow: drop_gate, gate_room, node_fifo
"""
