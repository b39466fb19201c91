"""Description of a board as data: pins, connectors, links. Needs no HDL.

Flow: mixture, board, connectors, links, reach, ecp5_buffers, lvds, ext_board
"""
