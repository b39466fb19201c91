"""The timeline of a run: pictures of any stretch of it, from hours to single clocks, for the web program's tab.

The page asks for pictures: what happened between two times, in as many columns as it has pixels. A picture of many
items has counts; a picture of few has the items, with their names. `pip install -e '.[view]'` installs what this
needs, Perfetto's interface included.

Flow: bins, counts, shares, tables, picture, growing, opened, conditions, understood, search, bynode, selected,
    questions, bookmarks, perfetto
"""
