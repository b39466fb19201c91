"""The iPSC/2 of the paper, emulated, and the paper's evaluation run on it.

Flow: machine, programs, runs, paper
"""
