"""Live views of a board or a recording: a web page, and a terminal.

A recording is a separate process, ``hypermon record``, that no view can delay. Views read the recording as it grows,
and the recorder's reports. `pip install -e '.[live]'` installs what the views need.

Flow: options, session, tail, view, machine, follow, checking, lines, history, files, guard, listen, pages, timeline,
    server, terminal
"""
