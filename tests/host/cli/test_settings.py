"""Options of `record` and `sim` as settings of the board."""

import pytest
from hypermon.hdl.layout import Sink
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.cli.settings import edge_masks, guard_settings, mask_settings, modes_of, trigger_settings
from hypermon.host.errors import HypermonError


@pytest.mark.parametrize(("edges", "samples", "masks"), [
    ([], [], (None, None, None)),
    (["both"], [], (0b1111, 0b1111, 0b1111)),
    (["falling"], [], (0, 0b1111, 0)),
    # What is said of a node goes before what is said of all, in any order.
    (["2=falling", "both", "0=rising"], [], (0b1011, 0b1110, 0b1010)),
    (["both", "1=falling"], ["before", "3=after"], (0b1101, 0b1111, 0b1000)),
    ([], ["1=after"], (0b1111, 0, 0b0010)),
    (["3=both"], ["2=after"], (0b1111, 0b1000, 0b1100)),
])
def test_edges_and_samples(edges, samples, masks):
    assert edge_masks(edges, samples, 4) == masks


@pytest.mark.parametrize(("edge", "reason"), [
    ("4=both", "--edge 4=both: there are nodes 0 to 3"), ("x=both", "--edge x=both: there are nodes 0 to 3"),
    ("²=both", "there are nodes 0 to 3"), ("both=1", r"--edge both=1: expected \[NODE=\]rising\|falling\|both"),
    ("up", "expected "), ("1=", "expected "), ("-1=both", "there are nodes"),
])
def test_edges_that_are_none(edge, reason):
    with pytest.raises(HypermonError, match=reason):
        edge_masks([edge], [], 4)


def test_modes():
    modes = [ItemMode.WORD, ItemMode.EVENT, ItemMode.NIBBLE, ItemMode.WORD]
    found = modes_of(["word", "1=event", "2=nibble"], 4, Sink.EXTENDED)
    assert [found[node] for node in range(4)] == modes
    assert modes_of(["nibble"], 4, Sink.CLASSIC) == modes_of([], 4, Sink.CLASSIC)
    with pytest.raises(HypermonError, match="--mode event: the classic configuration has nibbles only"):
        modes_of(["3=event"], 4, Sink.CLASSIC)


def test_masks():
    assert mask_settings(["nodes=0xf", "nibbles=1", "events=0-253"], Sink.EXTENDED) == {
        "nodes_kept": 15, "nibbles_kept": 1, "events_out": frozenset({254, 255})}
    assert mask_settings(["events=1,0x10-17"], Sink.CLASSIC)["events_out"] == frozenset(range(256)) - {1, 16, 17}
    assert mask_settings(["nodes=1"], Sink.CLASSIC) == {"nodes_kept": 1}
    for text in ("events=256", "events=3-2", "events=-1", "events=1,", "nodes=-1", "nodes=x", "what=1", "nodes"):
        with pytest.raises(HypermonError, match=f"--mask {text}: expected nodes=MASK"):
            mask_settings([text], Sink.EXTENDED)
    with pytest.raises(HypermonError, match="--mask nibbles=0: nothing would be kept"):
        mask_settings(["nibbles=0"], Sink.EXTENDED)
    with pytest.raises(HypermonError, match="the classic configuration keeps all nibbles"):
        mask_settings(["nibbles=3"], Sink.CLASSIC)


def test_guards():
    assert guard_settings(3, "255/1", Sink.EXTENDED) == {"glitch": 3, "rate_limit": (255, 1)}
    assert guard_settings(0, f"1/{1 << 31}", Sink.EXTENDED) == {"glitch": 0, "rate_limit": (1, 1 << 31)}
    assert guard_settings(0, None, Sink.CLASSIC) == {"glitch": 0}
    for text in ("256/1", "0/1", "1/0", f"1/{1 << 32}", "1/3", "1/", "/4", "4", "1/x", "-1/2"):
        with pytest.raises(HypermonError, match=f"--rate-limit {text}: expected ITEMS/WINDOWS"):
            guard_settings(0, text, Sink.EXTENDED)
    for glitch, limit, option in ((1, None, "--glitch"), (0, "1/2", "--rate-limit"), (1, "1/2", "--glitch")):
        with pytest.raises(HypermonError, match=f"^{option}: the classic configuration accepts every strobe"):
            guard_settings(glitch, limit, Sink.CLASSIC)


def test_triggers():
    assert trigger_settings(None, None, 0, Sink.CLASSIC) == {"pretrigger": 0}
    found = trigger_settings("node=2,nibble=7", "event=1", 16, Sink.EXTENDED)
    assert set(found) == {"start", "stop", "pretrigger"}
    assert found["start"] != found["stop"]
    for start, stop, name in (("event=1", None, "start"), (None, "event=1", "stop")):
        with pytest.raises(HypermonError, match=f"--{name} event=1: the classic board has no triggers"):
            trigger_settings(start, stop, 0, Sink.CLASSIC)
    with pytest.raises(HypermonError):
        trigger_settings(None, "event=1", 16, Sink.EXTENDED)
