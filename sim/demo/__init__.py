"""The demo: a real program's threads, traced through the virtual board.

Flow: __main__, strip
"""
