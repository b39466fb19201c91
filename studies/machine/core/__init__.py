"""Code that all emulated machines share: the kernel, the network, noise, ports, and the board that records them.

Flow: records, ports, kernel, network, queues, noise, cpu, crowd, session, board
"""
