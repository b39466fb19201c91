"""`hypermon dict`, and `hypermon decode --dictionary`."""

import json
import os
import re

import pyarrow.parquet as pq
import pytest

from tests.host.fake_board import FakeBoard

BOOK = """
[nodes]
1 = "disk"
[send]
id = 0x47
doc = "Away it goes."
fields = { peer = "u8" }
"""


def test_dict(run_cli, tmp_path):
    book = tmp_path / "my-work.toml"
    book.write_text(BOOK)
    status, out, err = run_cli("dict", book)
    assert (status, err) == (0, [])
    assert re.search(r"71 +send +1 +peer u8 +Away it goes\.\s+node 1: disk", out)
    status, out, err = run_cli("dict", book, "--json")
    assert (status, err) == (0, [])
    assert json.loads(out) == {"name": "send", "id": 71, "doc": "Away it goes.", "begin": None, "end": None,
                               "send": None, "receive": None, "key": None, "peer": None, "counters": [], "size": 1,
                               "fields": {"peer": {"type": "u8", "values": {}, "doc": ""}}}
    assert run_cli("dict", book, "--check") == (0, f"{book}: 1 events, 1 nodes with names\n", [])
    assert run_cli("dict", book, "--c-header", tmp_path / "my.h") == (0, "", [])
    assert "static inline int my_work_send(hm_port *port, uint8_t peer)" in (tmp_path / "my.h").read_text()
    status, out, err = run_cli("dict", book, "--c-header", "-", "--prefix", "x", "--check")
    assert (status, err) == (0, [f"{book}: 1 events, 1 nodes with names"])
    assert "X_SEND = 0x47" in out
    book.write_text(BOOK + "size = 3\n")
    for arguments in ([], ["--check"], ["--c-header", tmp_path / "other.h"]):
        status, out, err = run_cli("dict", book, *arguments)
        assert (status, out) == (2, "")
        assert err == [f"hypermon: {book}:8: send: an event has id, doc, fields, begin, end, send, receive, key, "
                       "peer, counters; not 'size'"]
    assert not (tmp_path / "other.h").exists()


@pytest.mark.parametrize("text", [
    "x = " + 3000 * "[", "id = " + 5000 * "1", "[a]\n 18446744073709551615184467440737,",
    3000 * "a." + "b = 1", "[" + 3000 * "a." + "b]", "x = {" + 3000 * "a." + "b = 1}", 70_000 * "# 15 characters\n"],
    ids=range(7))
def test_what_a_parser_of_dictionaries_does_not_expect(run_cli, tmp_path, text):
    book = tmp_path / "book.toml"
    book.write_text(text)
    status, out, err = run_cli("dict", book)
    assert (status, out, len(err)) == (2, "", 1)
    assert str(book) in err[0]
    assert len(text) < 10_000 or "longer than" in err[0]
    assert "a.a." not in text or "at most 256 dots" in err[0]


def test_a_file_that_is_no_file(run_cli, tmp_path):
    """A link's file is written, and what is a pipe stays one; a name need not be text."""
    book = tmp_path / os.fsdecode(b"n\xff.toml")
    book.write_text(BOOK)
    there, link, pipe = tmp_path / "there.h", tmp_path / "link.h", tmp_path / "pipe.h"
    there.write_text("old")
    link.symlink_to(there)
    assert run_cli("dict", book, "--prefix", "p", "--c-header", link)[0] == 0
    assert link.is_symlink()
    assert "p_send" in there.read_text()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert run_cli("dict", book, "--prefix", "p", "--c-header", pipe)[0] == 0
    assert os.read(reader, 1 << 16).decode() == there.read_text()
    os.close(reader)
    assert pipe.is_fifo()


def test_decode_with_a_dictionary(run_cli, make_run, tmp_path):
    """Fields come into the table, the RUN keeps the dictionary, another one replaces it."""
    nibbles = [2, 0x7, 0x4, 0xb, 0xa, 1, 0x9, 0x0, 1, 0x7, 0x4]  # ids 0x47 with ab, 9, and 0x47 with nothing
    board = FakeBoard(nodes=1).start().frames([(10 * i + 10, {0: v}) for i, v in enumerate(nibbles)]).stop(500)
    run = make_run(board)
    book = tmp_path / "book.toml"
    book.write_text(BOOK + "size = 3\n")
    status, out, err = run_cli("decode", run.path, "--dictionary", book)
    assert (status, out) == (2, "")
    assert "book.toml:8: send: an event has" in err[0]
    book.write_text(BOOK)
    assert json.loads(run_cli("stats", run.path, "--json")[1])["events_per_name"] == {}
    status, out, err = run_cli("decode", run.path, "--dictionary", book)
    assert (status, err) == (0, [])
    assert out.endswith(": the dictionary is kept; it needs events: --framing event finds them in nibbles\n")
    status, out, err = run_cli("decode", run.path, "--framing", "event", "--dictionary", book)
    assert (status, err) == (0, [])
    assert out.endswith(": 2 events named, 1 of unknown ids, 1 payloads too short for their fields: "
                        "2 of 3 events of node 0\n")
    book.unlink()
    first = (run.path / "framed.parquet").read_bytes()
    for _ in range(2):
        table = pq.read_table(run.path / "framed.parquet")
        assert table.select(["event", "name", "peer"]).to_pydict() == {
            "event": [0x47, 9, 0x47], "name": ["send", None, "send"], "peer": [0xab, None, None]}
        assert run_cli("decode", run.path, "--framing", "event")[::2] == (0, [])
        assert (run.path / "framed.parquet").read_bytes() == first
    assert run_cli("export", run.path, "--to", "events", tmp_path / "e") == (0, "", [])
    assert (tmp_path / "e").read_text().splitlines()[1:] == [
        f"{board.ps(10)},0,71,ab", f"{board.ps(60)},0,9,", f"{board.ps(90)},0,71,"]
    assert json.loads(run_cli("stats", run.path, "--json")[1])["events_per_name"] == {"send": 2}
    assert "send: 2" in run_cli("stats", run.path)[1]
    # Tables that are there already get what another dictionary says.
    book.write_text("[nine]\nid = 9\n")
    assert "1 events named, 2 of unknown ids" in run_cli("decode", run.path, "--dictionary", book)[1]
    assert pq.read_table(run.path / "framed.parquet").column_names[-2:] == ["aborted", "name"]
