"""What the pages of both evaluations share: the command that makes one, its runs, tables and figures.

Flow: runs, tables, markdown, compact, figures, command
"""
