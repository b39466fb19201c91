"""Tables that `hypermon query` prints."""


def test_numbers_are_aligned_to_the_right(run_cli, mixed_run):
    """Whole ones, decimals and floating ones; text to the left, and nothing where there is nothing."""
    question = ("select * from (values (1, 0.5, 1.25::double, 'a', null), (1000, 10.5, 100.0::double, 'long', 7)) "
                "as t(a_whole, a_decimal, a_float, a_text, an_empty)")
    status, out, _ = run_cli("query", mixed_run.path, question)
    head, one, two = (line.rstrip() for line in out.splitlines() if line.strip())
    assert status == 0
    ends = [head.index(name) + len(name) for name in ("a_whole", "a_decimal", "a_float")]
    assert [one[:end].split()[-1] for end in ends] == ["1", "0.5", "1.25"]
    assert [two[:end].split()[-1] for end in ends] == ["1000", "10.5", "100.0"]
    assert all(not line[end:end + 1].strip() for line in (one, two) for end in ends)
    begin = head.index("a_text")
    assert (one[begin:].rstrip(), two[begin:].split()) == ("a", ["long", "7"])
