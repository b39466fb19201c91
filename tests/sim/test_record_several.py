"""Two virtual boards in one recording."""

from hypermon.host import cli
from hypermon.host.recording import open_run


def test_two_virtual_boards(classic, tmp_path, capsys):
    times = (range(1000, 40_000, 1000), range(1500, 40_000, 3000))
    boards = []
    for number, own in enumerate(times):
        path = tmp_path / f"{number}.csv"
        path.write_text("time_ns,node,port\n" + "".join(
            f"{t},{2 + number},{t // 500 % 16}\n{t + 100},{2 + number},{16 + t // 500 % 16}\n" for t in own))
        boards += ["-b", f"sim:{path}"]
    run = tmp_path / "run"
    assert cli._run(["record", *boards, "-o", str(run), "--window", "200"]) == 0
    assert f"{run}: {sum(map(len, times))} events, 0 lost" in capsys.readouterr().out
    opened = open_run(run)
    # An edge is stamped with the begin of its window.
    wanted = sorted((t + 100, 2 + 17 * number, t // 500 % 16) for number, own in enumerate(times) for t in own)
    got = opened.events().to_pylist()
    assert [(row["node"], row["nibble"]) for row in got] == [(node, nibble) for _, node, nibble in wanted]
    late = [row["time_ps"] - 1000 * time for row, (time, *_) in zip(got, wanted, strict=True)]
    assert -200_000 <= min(late) <= max(late) <= 600_000
    assert opened.info.boards == ["board-0", "board-1"]
    assert opened.stats()["complete"]
