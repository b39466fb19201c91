"""The gateware without an FPGA, and what feeds it.

The root holds what a user imports or runs. ``stimulus`` reads what nodes write, ``virtual`` compiles and runs the
board, ``serve`` offers it to other programs, ``play`` plays a workload as a node; ``demo`` and ``ipsc`` use them.
``node`` is the C library for programs under observation.

Flow: pins, uart_server, cache, stimulus, virtual, serve, bench, play, demo, ipsc
"""
