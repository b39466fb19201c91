"""Models of the board's external memory.

Flow: sdram, sdram_chip
"""
