"""Tables of a page, in Markdown."""

from collections.abc import Iterable

__all__ = ["table"]


def table(head: Iterable[str], rows: Iterable[Iterable[object]], *, numbers: bool = False) -> str:
    """A table.

    Parameters
    ----------
    numbers : all columns but the first contain numbers, and are aligned to the right.
    """
    names = list(head)
    lines = [names, ["---", *(["---:" if numbers else "---"] * (len(names) - 1))],
             *([str(cell).replace("|", "/") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
