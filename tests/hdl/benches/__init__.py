"""cocotb benches; the simulator's process imports them, pytest does not."""
