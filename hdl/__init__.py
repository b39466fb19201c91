"""The gateware: the event capture board.

The root contains the modules that a user instantiates or runs. The sub-packages contain the implementation, and
their order is the data path::

    input -> gate -> merge -> items -> trigger -> sinks -> stream -> transport -> cable
               |       |                                       |
           accounts  time                                   control <- host

``input`` reads the ports. ``gate`` admits or refuses the nodes' writes and holds them. ``time`` is the board's clock.
``merge`` stamps the writes and merges them. In the extended configuration, ``items`` takes the merged writes apart, and
``trigger`` selects items. ``sinks`` makes event frames or compact items. ``stream`` builds blocks, and buffers them
until the link is free. ``transport`` carries them. ``accounts`` counts what happened. ``control`` is the host's access.
``lib`` contains general-purpose cells.

Flow: layout, input, gate, time, merge, regeneration, items, trigger, sinks, stream, transport, accounts, control, lib,
    capture, top, uart_top, usb_top, bus_top, axi_stream, wishbone, onchip_port, store_port, pcie_top, verilog_header,
    verilog, release
"""
