"""Pin assignments: tables, pages and drawings. Needs no HDL.

Flow: pinout, pages, picture
"""
