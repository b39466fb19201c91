"""Commands of the host on virtual boards."""
