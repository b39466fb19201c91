"""Parameters that a stage must not take."""

import gc
import re
import warnings
from collections.abc import Callable

import pytest
from amaranth.hdl import UnusedElaboratable

__all__ = ["rejects"]


def rejects(make: Callable[[], object], value: object) -> None:
    """``make`` raises ValueError, and the message has the offending value."""
    with warnings.catch_warnings():
        # What could not be made is not used either; Amaranth says so when it is collected.
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(ValueError, match=re.escape(repr(value))):
            make()
        gc.collect()
