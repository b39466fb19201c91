"""Numbers in words."""

import pytest
from hypermon.host.text.numbers import counted


@pytest.mark.parametrize(("count", "said"), [(0, "0 items"), (1, "1 item"), (2, "2 items"), (1234, "1,234 items")])
def test_one_thing_is_singular(count, said):
    assert counted(count, "item") == said
