"""Live views of a board or a recording: a web page, and a terminal.

A recording is a process of its own, ``hypermon record``, that no view can hold up: views read the recording as it
grows, and what the recorder says of itself. `pip install 'hypermon[live]'` brings what the views need.

Flow: options, session, tail, view, history, files, guard, pages, server, terminal
"""
