"""Text and numbers from elsewhere, checked before they are used or printed.

Flow: printable, console, numbers, json_file
"""
