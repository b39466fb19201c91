"""PCIe link: register accesses through BAR0, and the stream as writes into the host's memory.

Nothing here depends on a vendor's block. An adapter connects three streams to it: requests, completions, writes.

Flow: tlp, completer, ring_registers, ring, msi, function_reset, link, ultrascale_plus, series_7
"""
