"""A board behind a link: identity, settings, start and stop."""

import pytest
from hypermon.hdl.layout import FORMAT_VERSION, LATENCY, REGISTER_VERSION, Sink, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.link import open_link

from tests.host.fake_board import FakeBoard, FakeLink


def link(**registers):
    board = FakeBoard(nodes=5, clock_hz=35_000_000, window=Window.NS400).start()
    made = FakeLink(board)
    made.put(**registers)
    return made


def test_identity():
    identity = Device(link()).identity
    assert (identity.nodes, identity.clock_hz, identity.sinks, identity.data_bits) == (5, 35_000_000, ("classic",), 4)
    assert identity.as_dict()["build"] == "0000abcd"


@pytest.mark.parametrize(("registers", "wrong", "command"), [
    ({"MAGIC": 0xffffffff}, "answers, but is not a HYPERMON board", "hypermon flash BOARD"),
    ({"VERSION": REGISTER_VERSION << 8 | FORMAT_VERSION + 1}, "newer than this program (form",
     "pip install --upgrade"),
    ({"VERSION": REGISTER_VERSION + 1 << 8 | FORMAT_VERSION}, "newer than this program (reg", "pip install --upgrade"),
    ({"VERSION": FORMAT_VERSION}, "older than this program", "hypermon flash BOARD"),
    ({"CLOCK_HZ": 7}, "impossible", "hypermon flash BOARD"),
])
def test_unknown_identity_says_what_is_wrong_and_what_fixes_it(registers, wrong, command):
    with pytest.raises(HypermonError) as caught:
        Device(link(**registers))
    text = str(caught.value)
    assert text.startswith("fake ")
    assert wrong in text
    assert command in text
    assert "\n" not in text


def test_settings_reach_the_registers():
    made = link()
    device = Device(made)
    plain = device.prepare(Settings(Window.NS400, rising=0b11101, falling=0b00111, after=0b100, flush_ms=2))
    assert made.control == [0b00101]
    assert device.epoch == 1
    assert [device.read(n) for n in ("EDGE_RISING", "EDGE_FALLING", "SAMPLE_AFTER")] == [0b11101, 0b00111, 0b100]
    assert device.read("FLUSH") == 2_000_000 // 400
    assert plain["edge"] == ["both", "falling", "both", "rising", "rising"]
    assert plain["sample"] == ["before", "before", "after", "before", "before"]
    device.start()
    assert made.control[-1] == 0b10110
    assert device.scale.window is Window.NS400


def extended():
    return FakeLink(FakeBoard(nodes=5, clock_hz=35_000_000, window=Window.NS400, sink=Sink.EXTENDED).start())


@pytest.mark.parametrize("sink", Sink)
def test_the_sink_is_set_before_the_reset_that_takes_it(sink):
    made, writes = extended(), []
    write = made.write
    made.write = lambda address, value: (writes.append((address, value)), write(address, value))
    made.put(MODE=1 - sink)
    device = Device(made)
    assert device.identity.sinks == ("classic", "extended")
    assert device.prepare(Settings(Window.NS400, sink=sink))["sink"] == sink.name.lower()
    mode, control = (made.by_name["MODE"], sink), (made.by_name["CONTROL"], 0b00101)
    assert writes.index(mode) < writes.index(control)
    assert device.read("MODE") == sink


def test_a_sink_that_is_absent_is_refused_and_nothing_written():
    made = link()
    device = Device(made)
    made.write = None
    with pytest.raises(HypermonError, match="--config extended: fake has the classic configuration only"):
        device.prepare(Settings(Window.NS400, sink=Sink.EXTENDED))


def test_a_board_that_keeps_its_sink_is_said_to():
    made = extended()
    write = made.write
    made.write = lambda address, value: None if address == made.by_name["MODE"] else write(address, value)
    with pytest.raises(HypermonError, match="the configuration should be extended and MODE reads 0"):
        Device(made).prepare(Settings(Window.NS400, sink=Sink.EXTENDED))


def test_defaults_are_what_the_stimulus_says():
    made = link()
    made.played = type("Played", (), {"rising": 0, "falling": 31, "after": 2})()
    device = Device(made)
    device.prepare(Settings(Window.NS400))
    assert [device.read(n) for n in ("EDGE_RISING", "EDGE_FALLING", "SAMPLE_AFTER")] == [0, 31, 2]
    made.played = None
    device.prepare(Settings(Window.NS400))
    assert [device.read(n) for n in ("EDGE_RISING", "EDGE_FALLING", "SAMPLE_AFTER")] == [31, 0, 0]


def test_registers_that_do_not_take_are_noticed():
    made = link()
    device = Device(made)
    with pytest.raises(HypermonError, match="window should be 28 clocks and is 14"):
        device.prepare(Settings(Window.NS800))
    take = made.write
    made.write = lambda address, value: None if address == made.by_name["FLUSH"] else take(address, value)
    with pytest.raises(HypermonError, match="register FLUSH was set to"):
        device.prepare(Settings(Window.NS400))


def test_stop_without_a_clock_of_its_own_reads_the_board():
    made = link()
    made.board.time = 5 * 10**9
    device = Device(made)
    device.prepare(Settings(Window.NS400))
    device.start()
    assert device.stop() == 5 * 10**9 * 400_000
    assert made.control[-1] & 2 == 0
    assert made.control[-1] & 16
    made.board_ps = 77
    assert device.stop() == 77


def test_the_time_of_a_stop_is_asked_for_after_it():
    """Whatever the board sent while it captured is stamped earlier, so a heartbeat later than it is one of silence."""
    made = link()
    device = Device(made)
    device.prepare(Settings(Window.NS400))
    device.start()
    asked = []
    write = made.write
    made.write = lambda address, value: (asked.append(address), write(address, value))
    device.stop()
    assert asked == [made.by_name["CONTROL"], made.by_name["LATCH"]]


@pytest.mark.parametrize(("uri", "text"), [
    ("uart:/dev/no-port", "there is no /dev/no-port"),
    ("pcie:0000:ff:1f.7", "no such board"),
    ("nothing", "there is no board 'nothing'"), ("foo:bar", "there is no link 'foo'")])
def test_links_that_are_not_there(uri, text):
    with pytest.raises(HypermonError, match=text):
        open_link(uri)


@pytest.mark.parametrize(("bits", "phases"), [(0, 1), (2, 2), (3, 4)])
def test_samples_per_clock(bits, phases):
    """Stamps of a board with four samples are quarter clocks only if the phases of the samples are known."""
    board = FakeBoard(nodes=5, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    made = FakeLink(board)
    made.put(GEOMETRY=5 | 4 << 8 | 3 << 16 | bits << 22 | LATENCY << 24)
    for known in (0, 1):
        made.put(PHASES=known)
        device = Device(made)
        assert device.geometry.phases == device.identity.phases == phases
        assert ("quarter_clock" in device.identity.as_dict()) == (phases == 4)
        assert device.phases_known == (phases < 4 or bool(known))
        plain = device.prepare(Settings(Window.CLOCK, sink=Sink.EXTENDED))
        assert device.scale.phases == (phases if phases < 4 or known else 1)
        assert plain["half_clock"] == (phases == 2)
        assert plain.get("quarter_clock", False) == (phases == 4 and bool(known))
