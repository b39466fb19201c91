"""Programs of others that read what the host writes: readers of trace formats, and a browser."""
