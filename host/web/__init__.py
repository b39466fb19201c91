"""The web program: a recording under view, live and over time, in one page with two tabs.

*Live* (``/live/``) shows what arrives, and records with a board. *Time line* (``/timeline/``) shows any stretch of the
run. `hypermon serve` opens the first, `hypermon view` the second; both are made when somebody looks at them. The
server answers loopback or who has a token, and loads nothing from the network.

Flow: wanted, guard, listen, files, sockets, verdicts, shown, live_tab, timeline_tab, program
"""
