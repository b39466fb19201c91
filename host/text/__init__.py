"""Text and numbers from untrusted sources, checked before they are used or printed.

Flow: printable, output, console, numbers, json_file, toml_file
"""
