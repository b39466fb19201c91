"""The gateware: the event capture board.

The root holds what a user places or runs; the sub-packages hold how it is made, and their order is the data path::

    input -> merge -> sinks -> stream -> transport -> cable
               |                  |
           accounts            control <- host

``input`` reads the ports, ``merge`` stamps and merges what the nodes write, ``sinks`` makes event frames or compact
items of it, ``stream`` makes blocks and keeps them until the link is free, ``transport`` carries them. ``accounts``
counts what happened, ``control`` is the host's way in, ``lib`` holds cells that know nothing of monitors.

Flow: layout, input, merge, sinks, stream, transport, accounts, control, lib, capture, top, usb_top, bus_top,
    axi_stream, wishbone, onchip_port, verilog, release
"""
