"""Which pin is where: tables, pages and drawings. Needs no HDL.

Flow: pinout, picture
"""
