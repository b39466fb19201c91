"""What is said of a run wherever figures are printed: whether it is whole, and if not, what is known."""

import io
import json
import random
import re

import pytest
from hypermon.host.analysis.stats import causes_text, completeness, headline, print_stats, regeneration_doubts
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.host.recording.info import AT_RISK_S
from hypermon.host.recording.segments import write_json
from hypermon.host.report.report import report_html
from hypermon.host.run import Run, open_run
from hypermon.host.text.json_file import sealed
from rich.console import Console

from tests.bench.made_run import made_run
from tests.host.fake_board import FakeBoard, FakeLink, random_run


def printed(run_cli, run, *more) -> str:
    """What stands on standard output, in one line."""
    return " ".join(run_cli("stats", run.path, *more)[1].split())


def row(text: str, name: str) -> str:
    """A row of the report's tables."""
    found = re.search(rf"<td[^>]*>{name}</td><td[^>]*>(.*?)</td>", text)
    assert found is not None
    return found[1]


def test_a_whole_run(run_cli, make_run):
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    text = printed(run_cli, run)
    assert "lost 0 complete yes: nothing was lost ended test" in text
    assert (run.stats()["complete"], run.stats()["accounted"], run.stats()["proper"]) == (True, True, True)
    page = report_html(run)
    assert (row(page, "lost"), row(page, "complete"), row(page, "ended")) == (
        "nothing", "yes: nothing was lost", "test")


@pytest.mark.parametrize(("rejected", "discarded", "said"), [
    (8, 0, "8 rejected"), (0, 1234, "1,234 discarded"), (8, 3, "8 rejected, 3 discarded")])
def test_what_was_not_accepted_is_said_beside_complete(make_run, rejected, discarded, said):
    figures = make_run(random_run(FakeBoard(2), random.Random(1), 4)).stats()
    text = completeness({**figures, "rejected": rejected, "discarded": discarded})
    assert text == f"yes: nothing that the board accepted was lost; {said}"


def lossy():
    return FakeBoard(2).start().frames([(k, {0: 1}) for k in range(1, 31)]).loss([(1, 70, 5, 90)]).stop(99)


@pytest.mark.parametrize(("made", "data", "expected"), [
    (random_run(FakeBoard(2), random.Random(1), 4), lambda board: board.data, (True, True)),
    (lossy(), lambda board: board.data, (False, True)),
    (random_run(FakeBoard(2), random.Random(1), 4), lambda board: board.data + b"noise", (False, True)),
    (random_run(FakeBoard(2), random.Random(1), 4), lambda board: b"noise" + board.data, (False, True)),
    (random_run(FakeBoard(2), random.Random(1), 4), lambda board: b"".join(board.blocks[:-1]), (False, False))])
def test_the_account_on_disk_means_what_stats_means(make_run, made, data, expected):
    """``complete``: nothing is lost, damaged or missing. ``accounted``: every loss has been counted."""
    run = make_run(made, data(made))
    figures = run.stats()
    account = json.loads((run.path / "decode.json").read_text())
    assert (account["complete"], account["accounted"]) == (figures["complete"], figures["accounted"]) == expected


def test_a_stream_that_was_changed_is_not_complete_on_disk_either(make_run):
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    said = json.loads((run.path / "recording.json").read_text())
    said["end"]["stream"] = {"stream.bin": [run.stream_size + 1, 0]}
    said.pop("check", None)
    (run.path / "recording.json").write_text(json.dumps(said))
    run = Run(run.path)
    assert not run.stats()["complete"]
    account = json.loads((run.path / "decode.json").read_text())
    assert (account["complete"], account["accounted"]) == (False, True)


def test_a_run_that_lost_much_is_not_complete(run_cli, make_run):
    """That every loss is accounted for does not make it whole."""
    run = make_run(lossy())
    said = "no: 70 items were lost, 70 % of all; each is counted, with its time"
    text = printed(run_cli, run)
    assert f"lost 70, node FIFO full: 70 complete {said}" in text
    assert (run.stats()["complete"], run.stats()["accounted"]) == (False, True)
    assert json.loads(printed(run_cli, run, "--json"))["complete"] is False
    page = report_html(run)
    assert (row(page, "lost"), row(page, "complete")) == ("70", said)
    assert "each counted, with its time" in page


@pytest.mark.parametrize("lost", [0, 7])
def test_a_stream_that_was_cut_says_so_with_the_figures(run_cli, make_run, lost):
    board = FakeBoard(2).start().frames([(k, {0: 1}) for k in range(1, 31)])
    board = (board.loss([(1, lost, 5, 9)]) if lost else board).census(time=50)
    run = make_run(board, end=False)
    text = printed(run_cli, run)
    assert f"lost at least {lost}" in text
    assert "complete no: the recording has no proper end, and everything after" in text
    assert "ended not known: it is still being recorded, or its recorder was killed" in text
    assert "lost, at least" in text
    assert (run.stats()["complete"], run.stats()["accounted"], run.stats()["how"]) == (False, False, None)
    page = report_html(run)
    assert row(page, "lost") == f"at least {lost}"
    assert row(page, "complete").startswith("no: ")
    assert "Nothing.</p>" not in page
    assert "each counted, with its time" not in page
    assert f", at least {lost} lost" in run_cli("decode", run.path)[1]


def test_damage_that_cost_nothing_is_no_whole_stream(run_cli, make_run):
    board = FakeBoard(2).start().frames([(k, {0: 1}) for k in range(1, 31)]).census(time=50).stop(99)
    blocks = board.blocks
    run = make_run(board, blocks[0] + blocks[1] + b"noise" + blocks[2] + blocks[3])
    assert "complete no: 5 bytes of the stream are damaged; by the board's counts no item is missing" in \
        printed(run_cli, run)


@pytest.mark.parametrize("keep", ["events", "stats"])
def test_what_was_written_rarely_may_be_missing(run_cli, tmp_path, keep, monkeypatch):
    """After kill -9, the last accounts are those of the last time that they were written."""
    link = FakeLink(random_run(FakeBoard(2), random.Random(1), 20), piece=200)
    monkeypatch.setattr("hypermon.host.record.keep._CHECKPOINT_S", 0.0)
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)

    class Killed(BaseException):
        pass

    def kill(polls):
        if polls == 9:
            (tmp_path / "run").rename(tmp_path / "killed")
            raise Killed

    link.on_poll = kill
    with pytest.raises(Killed):
        record(Device(link), tmp_path / "run", Settings(), keep=keep)
    run = open_run(tmp_path / "killed")
    assert run.info.end is None
    line = f"up to {AT_RISK_S} seconds before that may be missing as well (--keep {keep})"
    assert line in headline(run.path, run.decode(), run)
    _, text, err = run_cli("stats", run.path)
    assert line in err[0]
    assert "complete no" in " ".join(text.split())
    assert "all here" not in text + err[0]


def test_an_early_end_is_said_each_time(run_cli, make_run):
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4), end=False)
    told = json.loads((run.path / "recording.json").read_text())
    told["end"] = {"how": "the disk is almost full: 3 MiB are left", "proper": False, "all_written": True,
                   "duration_ps": 10**12}
    write_json(run.path / "recording.json", {name: value for name, value in told.items() if name != "check"})
    _, text, err = run_cli("stats", run.path)
    assert err == [f"{run.path}: the recording ended early: the disk is almost full: 3 MiB are left"]
    assert "ended early: the disk is almost full" in " ".join(text.split())
    assert "class=\"loss\">early: the disk is almost full" in report_html(Run(run.path))


def test_figures_for_people(make_run):
    """Rates are of the time that was recorded."""
    board = FakeBoard().start().frames([(k, {0: 1}) for k in range(1, 301)]).frames([(400, {1: 1})]).stop(500)
    run = make_run(board)
    path = run.path / "recording.json"
    values = {k: v for k, v in json.loads(path.read_text()).items() if k != "check"}
    values["end"]["duration_ps"] = 2 * 10**12
    path.write_text(json.dumps(sealed(values)))
    out = io.StringIO()
    print_stats(Run(run.path), Console(file=out, width=150))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["items", "301,", "150", "/s"] in lines
    assert ["0", "300", "150", "99.7", "%", "0"] in lines
    assert ["1", "1", "0.5", "0.3", "%", "0"] in lines
    assert ["2", "0", "0", "0.0", "%", "0"] in lines


def test_a_loss_whose_cause_is_not_recorded_is_called_so(tmp_path, run_cli):
    """The tables of another program have losses, and no counts by cause."""
    run = made_run(tmp_path / "run", 1000, nodes=2, losses=3)
    lost = run.decode()["lost"]
    words = f"cause not recorded: {lost:,}"
    assert f"{lost:,} items lost ({words}), see loss.parquet" in headline(run.path, run.decode(), run)
    _, text, err = run_cli("stats", run.path)
    assert f"{lost:,}, {words} " in " ".join(text.split())
    assert words in err[0]
    assert f"; {words})" in report_html(run)


def test_recorded_causes_have_no_rest(run_cli, make_run):
    board = FakeBoard(2)
    run = make_run(random_run(board, random.Random(1), 40, losses=0.5))
    done = run.decode()
    assert done["lost"]
    assert "not recorded" not in headline(run.path, done, run)
    known = {"causes": {"link": 2, "node_fifo": 0}, "lost": 5}
    assert causes_text(known) == "lost on the link: 2, cause not recorded: 3"
    assert causes_text({"causes": {"link": 0}, "lost": 0}) == ""


def test_a_restarted_regeneration_board_is_named_once():
    said = regeneration_doubts({"links_absent": [3], "links_unsure": [0, 1], "links_restarted": [1]})
    assert [line.split(":")[0] for line in said] == ["nodes 24 to 31", "nodes 8 to 15", "nodes 0 to 7"]
    assert "restarted or exchanged" in said[1]
    assert "silent at the end" in said[2]
    # Recordings of earlier boards do not tell.
    assert len(regeneration_doubts({"links_unsure": [0]})) == 1
    assert not regeneration_doubts({})


@pytest.mark.parametrize(("nodes", "cut", "said"), [
    ("0", [1, 2, 3, 4], "nodes 1 to 4 are"), ("1,3", [0, 2, 4], "nodes 0, 2, 4 are"), ("0-3", [4], "node 4 is"),
    ("2", [0, 1, 3, 4], "nodes 0 to 1, 3 to 4 are"), ("0-4", [], "")])
@pytest.mark.parametrize("boards", [1, 2])
def test_a_part_says_which_nodes_are_not_in_it(make_run, run_cli, tmp_path, boards, nodes, cut, said):
    """It has no figures of them, not even 0; in a run of several boards, nodes are numbered as in the run."""
    runs = [make_run(random_run(FakeBoard(count), random.Random(count), 20), name=f"run{count}", board=f"sim:{count}")
            for count in ([5] if boards == 1 else [3, 2])]
    whole = runs[0].path
    if boards == 2:
        whole = tmp_path / "both"
        assert run_cli("merge", *(run.path for run in runs), "-o", whole, "--offset", f"{runs[1].path}=1")[0] == 0
    part = tmp_path / "part"
    assert run_cli("trim", whole, part, "--nodes", nodes)[0] == 0
    assert Run(part).stats()["cut_nodes"] == cut
    lines = run_cli("stats", part)[1].splitlines()
    told = f"yes: nothing was lost; {said} not in this part of a run" if said else "yes: nothing was lost"
    assert [line.split(maxsplit=1)[1].strip() for line in lines if line.startswith("complete")] == [told]
    head = next(number for number, line in enumerate(lines) if line.split()[:2] == ["node", "items"])
    rows = [int(line.split()[0]) for line in lines[head + 1:] if line.strip()]
    assert rows == [node for node in range(5) if node not in cut]
    assert json.loads(run_cli("stats", part, "--json")[1])["cut_nodes"] == cut


def test_a_part_with_losses_says_it_too(make_run, run_cli, tmp_path):
    run = make_run(lossy())
    assert run_cli("trim", run.path, tmp_path / "part", "--nodes", "1")[0] == 0
    text = printed(run_cli, Run(tmp_path / "part"))
    assert "each is counted, with its time; node 0 is not in this part of a run ended" in text
    page = report_html(Run(tmp_path / "part"))
    assert row(page, "complete").endswith("; node 0 is not in this part of a run")
