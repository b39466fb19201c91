"""Live views of a board or a recording: what the web program's live tab and the terminal show, and lines.

A recording is a separate process, ``hypermon record``, that no view can delay. Views read the recording as it grows,
and the recorder's reports. `pip install -e '.[live]'` installs what the views need.

Flow: options, session, tail, view, machine, follow, checking, lines, history, terminal
"""
