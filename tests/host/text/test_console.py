"""What is printed for people is what there is."""

import io

from hypermon.host.text.console import cell, make_console
from rich.table import Table


def printed(value, **options):
    out = io.StringIO()
    make_console(file=out, **options).print(value)
    return out.getvalue()


def test_no_pictures():
    assert printed("a :smile: b") == "a :smile: b\n"
    table = Table.grid()
    table.add_row(":x:", cell(":x: [red]"))
    assert printed(table) == ":x::x: [red]\n"


def test_nothing_is_cut_but_on_a_terminal():
    long = "0123456789" * 1000
    assert printed(cell(long)) == f"{long}\n"
    assert len(printed(cell(long), force_terminal=True, width=80).splitlines()) == 125


def test_control_characters():
    assert cell("a\x1b[2J\x07\x9b\u202e\udcffb").plain == "a\\x1b[2J\\x07\\x9b\\u202e\\udcffb"
