"""Tables in Markdown."""

from hypermon.studies.page.markdown import table


def test_numbers_are_at_the_right():
    rows = [("a|b", 1), ("c", 2.5)]
    assert table(("name", "s"), rows) == "| name | s |\n| --- | --- |\n| a/b | 1 |\n| c | 2.5 |"
    assert table(("name", "s"), rows, numbers=True).splitlines()[1] == "| --- | ---: |"
