"""The signals of Figures 3 and 4, from the gateware: each strobe is in one vector, with the stamp of its window."""

import pytest
from hypermon.studies.ipsc.runs.waves import waves


@pytest.mark.parametrize(("figure", "pushed", "expected"), [
    (3, [1, 1], [1, 1]), (4, [1, 8, 4, 2, 32, 16], [13, 34, 16])])
def test_each_strobe_is_in_one_vector(figure, pushed, expected):
    """Figure 3: a node writes two nibbles; Figure 4: six nodes write one each, in three windows."""
    rows = [row for row in waves() if row["figure"] == figure]
    assert [row["clock"] for row in rows] == list(range(len(rows)))
    assert [row["push"] for row in rows if row["push"]] == pushed
    leaves = [row for row in rows if row["vector"] >= 0]
    assert [row["vector"] for row in leaves] == expected
    windows = [sum(before["end"] for before in rows[:row["clock"]]) for row in rows if row["push"]]
    assert [row["stamp"] - leaves[0]["stamp"] for row in leaves] == sorted({at - windows[0] for at in windows})
