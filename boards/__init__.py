"""Development boards: pins, clocks, links."""
