"""The web program: a recording under view, live and over time, in one page with two tabs.

*Live* (``/live/``) shows what arrives, and records with a board. *Timeline* (``/timeline/``) shows any stretch of the
run. `hypermon serve` opens the first, `hypermon view` the second; each is made when it is opened. The server
answers loopback, or clients that present the token, and loads nothing from the network.

Flow: wanted, guard, listen, files, sockets, verdicts, shown, live_tab, timeline_tab, program
"""
