"""The broken twins of all proofs can be made: each text that a twin changes is still in the source, once."""

import gc
import warnings
from importlib import import_module
from pathlib import Path

import pytest

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("test_formal_*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_each_twin_can_be_made(module):
    twins = import_module(f"{__package__}.{module}").REFUTED
    assert twins
    with warnings.catch_warnings():
        # They are made and not used; collected here, they blame no other test for it.
        warnings.simplefilter("ignore")
        for make in twins.values():
            make()
        gc.collect()
