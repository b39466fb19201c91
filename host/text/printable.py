"""Makes untrusted text safe to print: text from boards, relays, files, other programs."""

import unicodedata

__all__ = ["printable", "visible"]

#: Maximum length of text from elsewhere in a message.
_LONGEST = 2000
#: Characters that a terminal interprets as commands or that let text appear in another position: control and format
#: characters (escape sequences, marks of direction), line separators, halves of surrogate pairs, unassigned characters.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str, longest: int = _LONGEST) -> str:
    r"""One line that shows what the text is, and does nothing: ``\x1b`` instead of an escape character.

    Runs of blanks and line ends become one space. Text that is longer than ``longest`` characters then is cut, and
    ``...`` follows.
    """
    # Each word has a character: no more than this many words can be shown, and the rest stays as it is.
    shown = visible(" ".join(text.split(maxsplit=longest))[:longest + 1])
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


def visible(text: str) -> str:
    r"""The text with escapes in place of characters that a terminal would interpret: ``\x1b``, ``\n``."""
    return "".join(letter.encode("unicode_escape").decode() if unicodedata.category(letter) in _UNFIT else letter
                   for letter in text)
