"""The gateware without an FPGA, and its inputs.

The root contains what a user imports or runs. ``stimulus`` reads what nodes write, from captures and tables.
``virtual`` compiles and runs the board. ``serve`` offers the board to other programs. ``emulate`` plays a workload as a
real node. ``pytest_plugin`` and ``labgrid_driver`` record boards in tests. ``commands`` are those of ``hypermon`` that
need one of these. ``demo`` uses them.

Flow: pins, uart_server, verilator, cache, stimulus, virtual, serve, bench, recording,
pytest_plugin, labgrid_driver, emulate, demo, commands
"""
