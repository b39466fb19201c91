"""The events that names mean."""

import duckdb
import pytest
from hypermon.host.contracts.events import Vocabulary, with_state
from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.trace import UnfitError
from hypermon.host.dictionary.dictionary import load_dictionary

from tests.host.telling import BOOK


@pytest.fixture
def book(tmp_path):
    (tmp_path / "book.toml").write_text(BOOK)
    return load_dictionary(tmp_path / "book.toml")


def test_names(book):
    words = Vocabulary(book, {"events": ("time_ps", "node", "nibble"), "framed": ("time_ps", "node", "event")}, False)
    send = words.source(Event("send"))
    assert (send.fields, send.ids, send.ends, send.framed, send.items) == (
        ("peer", "sequence"), {4}, ("peer", True), True, False)
    assert send.whole == {"peer", "sequence"}
    assert words.source(Event("event:4")) == send
    assert words.source(Event("event:0x63")).fields == ()
    assert words.source(Event("nibble:7")).sql.endswith("from events where nibble = 7")
    both = Vocabulary(book, {"events": ("event", "nibble", "aborted"), "framed": ("event",)}, True)
    assert both.source(Event("send")).sql.count("union all") == 1
    assert "not aborted" in both.source(Event("nibble:7")).sql


def test_an_aborted_event_is_none():
    """In the queries that the judge asks, and in those by which lines are read."""
    own = Vocabulary(None, {"events": ("time_ps", "node", "event", "aborted")}, True).source(Event("event:4"))
    with duckdb.connect() as db:
        db.execute("create table events as from (values (1::bigint, 0::smallint, 4::utinyint, true), (2, 0, 4, false), "
                   "(3, 0, 5, false)) as own (time_ps, node, event, aborted)")
        assert db.execute(f"select time_ps from ({own.sql})").fetchall() == [(2,)]
        assert db.execute(f"select time_ps from ({own.rows}) where value = {own.value}").fetchall() == [(2,)]


def test_nibbles_of_a_port_of_8_bits():
    """What a node writes at once is called a nibble there, too. No board of 4 bits can have nibble 16."""
    columns = {"events": ("nibble",)}
    assert Vocabulary(None, columns, False, 8).source(Event("nibble:255")).value == 255
    for bits, most in ((4, 15), (8, 255)):
        with pytest.raises(ValueError, match=f"there is no such nibble; there are nibble:0 to nibble:{most}$"):
            Vocabulary(None, columns, False, bits).source(Event(f"nibble:{most + 1}"))
        with pytest.raises(ValueError, match=f"there are nibble:0 to nibble:{most};"):
            Vocabulary(None, columns, False, bits).source(Event("send"))


@pytest.mark.parametrize(("name", "said"), [
    ("sent", "there is no event 'sent'; there are send, "), ("event:256", "no such event"),
    ("word:7", "no node of this run writes single words")])
def test_unknown_names(book, name, said):
    words = Vocabulary(book, {"events": ("nibble",), "framed": ("event",)}, False)
    with pytest.raises(ValueError, match=said):
        words.source(Event(name))


def test_states(book):
    rule = Rule("x", "duration", 1, {}, values={"state": "it's a job", "max": 1})
    found = with_state(rule, book)
    assert (found.events["begin"], found.events["end"], found.key) == ((Event("begin"),), (Event("end"),), ("job",))
    assert with_state(Rule("x", "share", 1, {}, values={"state": "it's a job"}), book).key == ()
    plain = Rule("x", "rate", 1, {})
    assert with_state(plain, None) is plain
    with pytest.raises(UnfitError, match="there is no state 'it is'; there are it's a job, phase"):
        with_state(Rule("x", "share", 1, {}, values={"state": "it is"}), book)
    with pytest.raises(UnfitError, match="needs a dictionary"):
        with_state(rule, None)
