"""Text from somewhere else, made fit to be printed: from boards, relays, files, other programs."""

import unicodedata

__all__ = ["printable", "visible"]

#: Longer text from elsewhere is no message.
_LONGEST = 2000
#: What a terminal takes for a command or what lets text appear where it is not: control and format characters
#: (escape sequences, marks of direction), separators of lines, halves of surrogate pairs, what is not assigned.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str, longest: int = _LONGEST) -> str:
    r"""One line that shows what the text is, and does nothing: ``\x1b`` instead of an escape character.

    Blanks and line ends become a space each. Text that is longer than ``longest`` characters is cut, which shows.
    """
    shown = visible(" ".join(text[:2 * longest].split()))
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


def visible(text: str) -> str:
    r"""The text with escapes instead of what a terminal would obey: ``\x1b``, ``\n``."""
    return "".join(letter.encode("unicode_escape").decode() if unicodedata.category(letter) in _UNFIT else letter
                   for letter in text)
