"""What a board is, as data: pins, connectors, links. Needs no HDL.

Flow: board, connectors, links, reach, sizes, pairs
"""
