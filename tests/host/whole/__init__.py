"""From the virtual board's ports to tables."""
