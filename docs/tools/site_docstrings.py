"""For `make site`: docstrings, which are written to be read in a terminal, as Markdown."""

import re

import griffe

__all__ = ["Readable", "markdown"]

_SECTION = re.compile(r"^(Parameters|Members|Raises|Returns|Attributes|Yields)\n-+\n", re.MULTILINE)

_DOCTEST = re.compile(r"(?:^(?:>>>|\.\.\.) .*\n?)+", re.MULTILINE)


def markdown(text: str) -> str:
    """Roles and literals as code, sections as bold lines, ``name : meaning`` as lists."""
    text = re.sub(r":\w+:`~?\.*([^`]+)`", lambda m: f"`{m[1].rpartition('.')[2]}`", text)
    text = text.replace("``", "`")
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)
    text = _DOCTEST.sub(lambda m: f"```pycon\n{m[0].rstrip()}\n```\n", text)
    # Of a package: its order is that of the reference.
    text = re.sub(r"^Flow: .*(?:\n {4}.*)*", "", text, flags=re.MULTILINE)
    parts = _SECTION.split(text)
    out = parts[0]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        out += f"\n**{title}**\n\n{_listed(body, title)}"
    return out


def _listed(body: str, title: str) -> str:
    """The entries of a section, each begun by a line that is not indented."""
    lines = []
    for line in body.splitlines():
        name, colon, meaning = line.partition(" : ")
        if line and not line[0].isspace() and colon:
            names = ", ".join(f"`{one.strip()}`" for one in name.split(","))
            lines.append(f"- {names}: {meaning}")
        elif line and not line[0].isspace() and title == "Raises" and " " not in line:
            lines.append(f"- `{line}`:")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


class Readable(griffe.Extension):
    """Rewrites each docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
