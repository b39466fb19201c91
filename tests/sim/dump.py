"""Value change dumps of single wires, for tests."""

from pathlib import Path

__all__ = ["dump"]


def dump(path: Path, channels) -> str:
    """Writes channels, each with its level at the start and changes (ps, level); returns the path."""
    marks = {name: chr(33 + k) for k, name in enumerate(channels)}
    # Changes of a wire at one time stay in their order.
    rows = sorted(((time, marks[name], level) for name, (_, changes) in channels.items() for time, level in changes),
                  key=lambda row: row[0])
    text = "$timescale 1 ps $end\n" + "".join(f"$var wire 1 {mark} {name} $end\n" for name, mark in marks.items())
    text += "$enddefinitions $end\n#0\n" + "".join(f"{channels[name][0]}{mark}\n" for name, mark in marks.items())
    path.write_text(text + "".join(f"#{time}\n{level}{mark}\n" for time, mark, level in rows))
    return str(path)
