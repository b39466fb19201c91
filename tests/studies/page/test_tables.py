"""Tables of measured values as CSV files."""

import pytest
from hypermon.host.errors import HypermonError
from hypermon.studies.page.tables import load, save


def test_values_come_back_as_they_were(tmp_path):
    """With all their digits, or nine; what a row does not have stays away."""
    rows = [{"name": "x,\"y\"", "n": 3, "s": 1 / 3, "met": False}, {"name": "z", "more": 1e-12}]
    save({"one": rows}, tmp_path / "exact")
    assert load(tmp_path / "exact") == {"one": rows}
    save({"one": rows, "empty": []}, tmp_path / "new", 9)
    assert load(tmp_path / "new") == {"one": [{"name": "x,\"y\"", "n": 3, "s": 0.333333333, "met": False},
                                              {"name": "z", "more": 1e-12}]}


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(HypermonError, match="no tables there; without --again they are made"):
        load(tmp_path)
