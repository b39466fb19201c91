"""Value change dumps: scalars, vectors, scopes, unknown levels, timescales, malformed ones."""

from contextlib import suppress

import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.port_mapping import Mapping
from hypermon.sim.stimulus.rows import joined
from hypermon.sim.stimulus.vcd_file import channels_of_vcd, read_vcd

NAMES = ("d0", "d1", "d2", "d3", "e")
CODES = "!\"#$%"
SCALARS = "$timescale 1 ns $end\n$scope module top $end\n" + "".join(
    f"$var wire 1 {c} {n} $end\n" for c, n in zip(CODES, NAMES, strict=True)) + "$upscope $end\n$enddefinitions $end\n"
VECTOR = ("$timescale 1 ns $end\n$var wire 4 v data [3:0] $end\n$var reg 1 s strobe $end\n$enddefinitions $end\n")
VECTOR_NAMES = ("data[0]", "data[1]", "data[2]", "data[3]", "strobe")


@pytest.fixture
def track(tmp_path):
    """Reads one port of a text: level at the start, changes."""
    def track(text, channels=NAMES):
        path = tmp_path / "x.vcd"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        (one,) = read_vcd(str(path), [Mapping("", str(path), 0, channels, None, None)])
        # What a board can see: one change at a time.
        seen, _ = joined(one.rows(0))
        return one.initial, list(zip(seen.time.tolist(), seen.port.tolist(), strict=True))
    return track


def test_scalars(track):
    assert track(SCALARS + "#0\n0!\n1\"\n0#\n0$\n0%\n#10\n1%\n#20\n0%\n1!\n") == (2, [(10_000, 18), (20_000, 3)])


def test_any_white_space(track):
    words = (SCALARS + "#0 $dumpvars 0! 1\" 0# 0$ 0% $end #10 1% #20 0% 1!").split()
    assert track("\r\n".join(words)) == track(" ".join(words)) == (2, [(10_000, 18), (20_000, 3)])


def test_vectors(track):
    text = VECTOR + "$dumpvars b101 v 0s $end\n#5\nb1111 v\n1s\n#6\nb0 v\n#7\nB1000\nv\n#8\nb00000001 v\nb0 s\n"
    assert track(text, VECTOR_NAMES) == (5, [(5000, 31), (6000, 16), (7000, 24), (8000, 1)])


def test_ports_of_8_bits(track):
    text = VECTOR.replace("4 v data [3:0]", "8 v data [7:0]")
    names = (*(f"data[{bit}]" for bit in range(8)), "strobe")
    assert track(text + "#0\nb10100101 v\n0s\n#5\nb11111111 v\n1s\n#6\nb0 v\n", names) == (
        0xa5, [(5000, 0x1ff), (6000, 0x100)])


def test_short_and_unknown_vectors(track):
    """0 and 1 are extended with 0, x and z with themselves, which are no levels."""
    text = VECTOR + "#0\nb1111 v\n0s\n#1\nb1 v\n#2\nbx0 v\n#3\nb1111 v\n#4\nbz v\n1s\n#5\nbx01 v\n"
    assert track(text, VECTOR_NAMES) == (15, [(1000, 1), (2000, 0), (3000, 15), (4000, 31), (5000, 29)])


@pytest.mark.parametrize(("declared", "channels"), [
    ("4 v data [3:0]", ("data[0]", "data[1]", "data[2]", "data[3]")),
    ("4 v data[3:0]", ("data[0]", "data[1]", "data[2]", "data[3]")),
    ("4 v data", ("data[0]", "data[1]", "data[2]", "data[3]")),
    ("4 v data [7:4]", ("data[4]", "data[5]", "data[6]", "data[7]")),
    ("4 v data [0:3]", ("data[3]", "data[2]", "data[1]", "data[0]")),
    ("8 v data [7:0]", ("top.data[0]", "top.data[1]", "top.data[2]", "top.data[3]")),
    ("4 v data [1:-2]", ("data[-2]", "data[-1]", "data[0]", "data[1]"))])
def test_numbering_of_bits(track, declared, channels):
    text = (f"$timescale 1ns $end $scope module top $end $var wire {declared} $end $var wire 1 s e $end "
            "$upscope $end $enddefinitions $end #0 b0 v 0s #1 b1101 v")
    assert track(text, (*channels, "e")) == (0, [(1000, 13)])


def test_bits_that_are_declared_one_by_one(track):
    text = "$timescale 1ns $end " + "".join(f"$var wire 1 {c} d [{i}] $end " for i, c in enumerate("abcd"))
    text += "$var wire 1 s e $end $enddefinitions $end #0 0a 0b 0c 0d 0s #1 1c"
    assert track(text, ("d[0]", "d[1]", "d[2]", "d[3]", "e")) == (0, [(1000, 4)])


@pytest.mark.parametrize(("scale", "times"), [
    ("1 s", (10**12, 3 * 10**12)), ("10 ms", (10**10, 3 * 10**10)), ("1us", (10**6, 3 * 10**6)),
    ("100\nns", (10**5, 3 * 10**5)), ("10 ns", (10**4, 3 * 10**4)), ("1 ps", (1, 3)), ("100 ps", (100, 300)),
    ("1 fs", (1,)), ("100 fs", (1,)), ("500 fs", (1, 2))])
def test_timescales(track, scale, times):
    text = SCALARS.replace("1 ns", scale) + "#0 0! 0\" 0# 0$ 0% #1 1! #3 1\""
    assert [t for t, _ in track(text)[1]] == list(times)


def test_the_first_sample_is_a_level(track):
    changes = "1! 0\" 0# 0$ 1%"
    assert track(SCALARS + f"#0 {changes} #7 0%") == (17, [(7000, 1)])
    assert track(SCALARS + f"#5 {changes} #7 0%") == (17, [(7000, 1)])
    assert track(SCALARS + f"$dumpvars {changes} $end #7 0%") == (17, [(7000, 1)])
    assert track(SCALARS + f"$dumpvars 0! $end #0 {changes} #7 0%") == (17, [(7000, 1)])
    assert track(SCALARS + f"#0 {changes} #0 0! #7 0%") == (16, [(7000, 0)])
    assert track(SCALARS + changes) == (17, [])
    assert track(SCALARS) == (0, [])


def test_a_channel_without_a_value_is_0(track):
    assert track(SCALARS + "#0 0! #7 1%") == (0, [(7000, 16)])


def test_unknown_levels_are_no_edges(track):
    # The strobe begins unknown: its first level is no edge; x between two levels is not one either.
    text = SCALARS + "#0 0! 0\" 0# 0$ x% #1 1! #2 1% #3 z% #4 1% #5 X% #6 0%"
    assert track(text) == (16, [(1000, 17), (6000, 1)])


def test_changes_that_change_nothing(track):
    assert track(SCALARS + "#0 0% #1 1! 0! #2 0% #3 1% #4 #5 1% 1! 0! 1%") == (0, [(3000, 16)])


def test_other_variables_and_commands(track):
    text = SCALARS.replace("$enddefinitions", "$var real 64 r volts $end $var wire 8 w other $end "
                           "$var string 1 t text $end $comment a $var $end $date today $end $enddefinitions")
    text += "#0 r1.5e3 r b1010 w shello t 0% $comment #99 1% $end #1 $dumpoff x% $end #2 $dumpon 0% $end "
    text += "#3 1% $dumpall 1% $end"
    assert track(text) == (0, [(3000, 16)])


def test_names(track, tmp_path):
    text = ("$timescale 1ns $end $scope module a $end $var wire 1 ! e $end $upscope $end "
            "$scope module b $end $var wire 1 ! e $end $var wire 1 k f $end $var wire 2 v w [1:0] $end $upscope $end "
            "$scope module c $end $var wire 1 m f $end $upscope $end $enddefinitions $end #0 0! 0k 1m #1 1!")
    # One code under two names is one channel.
    assert track(text, ("e", "a.e", "b.e", "c.f", "e")) == (8, [(1000, 31)])
    with pytest.raises(InputError, match=r"channel f may be b\.f or c\.f"):
        track(text, ("f", "e", "e", "e", "e"))
    with pytest.raises(InputError, match=r"channel w has 2 bits: name one, such as w\[0\]"):
        track(text, ("w", "e", "e", "e", "e"))
    with pytest.raises(InputError, match=r"unknown channel w\[2\]; there are a\.e, b\.e, b\.f, b\.w\[1:0\], c\.f"):
        track(text, ("w[2]", "e", "e", "e", "e"))
    assert channels_of_vcd(str(tmp_path / "x.vcd")) == ["a.e", "b.e", "b.f", "b.w[1:0]", "c.f"]


@pytest.mark.parametrize(("body", "line", "reason"), [
    ("#0\n0!\n#5\n1!\n#4\n0!\n", 5, "time decreases: 4 after 5"), ("#0\n#x\n", 2, "time is not a number: 'x'"),
    ("#-1\n", 1, "time is not a number"), ("#\n", 1, "time is not a number"), ("#1.5\n", 1, "time is not a number"),
    ("#0\n1?\n", 2, "no variable has the code '?'"), ("#0\nb101 ?\n", 2, "no variable has the code"),
    ("#0\nb101", 2, "no variable has the code ''"), ("#0\nb12 !\n", 2, "not a value: 'b12'"),
    ("#0\nb !", 2, "not a value"),
    ("#0\nhello\n", 2, "not a value change: 'hello'"), ("#0\n$foo\n", 2, "not a value change"),
    ("#9223372036854775\n#9223372036854776\n", 2, "time is beyond 2^63 ps"), ("#" + "9" * 30, 1, "beyond 2^63"),
    # More digits than Python reads at once.
    ("#" + "9" * 5000, 1, "beyond 2^63"), ("#0\nb" + "1" * 5000 + " ?\n", 2, "no variable has the code"),
    ("#0\nb" + "2" * 5000 + " !\n", 2, "not a value")])
def test_malformed_changes(track, body, line, reason):
    offset = SCALARS.count("\n")
    with pytest.raises(InputError) as error:
        track(SCALARS + body)
    assert error.value.line == line + offset
    assert reason in error.value.reason
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "line", "reason"), [
    ("", None, "no $enddefinitions"), ("hello\n", 1, "not a value change dump"),
    (b"\xff\xfe\n", 1, "not a value change dump"),
    (SCALARS.replace("$timescale 1 ns $end\n", ""), None, "no $timescale"),
    (SCALARS.replace("1 ns", "1 h"), 1, "not a timescale"), (SCALARS.replace("1 ns", "0 ns"), 1, "not a timescale"),
    (SCALARS.replace("1 ns", "fast"), 1, "not a timescale"), ("\n$timescale 1 ns\n", 2, "$timescale has no $end"),
    ("$timescale 1 ns $end\n$var wire 1 $end\n", 2, "$var needs"), ("$var wire x ! e $end", 1, "$var needs"),
    (SCALARS.replace(" e ", " f "), None, "unknown channel e; there are top.d0, top.d1, top.d2, top.d3, top.f")])
def test_malformed_declarations(track, text, line, reason):
    with pytest.raises(InputError) as error:
        track(text)
    assert error.value.line == line
    assert reason in error.value.reason


@pytest.mark.parametrize(("text", "reason"), [
    (SCALARS.replace("1 ns", "9" * 5000 + " ns") + "#0\n0!\n#1\n1!\n", "beyond 2^63"),
    (SCALARS.replace("wire 1 ", "wire " + "9" * 5000 + " ", 1) + "#0\n", "bits: name one"),
    (SCALARS.replace("wire 1 ", "wire 2 ", 1).replace(f"{NAMES[0]} $end", f"{NAMES[0]} [{'9' * 5000}:0] $end")
     + "#0\n", "has 2 bits: name one")])
def test_declarations_of_5000_digits(track, text, reason):
    """More digits than Python reads at once."""
    with pytest.raises(InputError) as error:
        track(text)
    assert reason in error.value.reason


def test_unreadable(tmp_path):
    for path in (tmp_path / "none.vcd", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_vcd(str(path), [])


def test_cut_anywhere(track):
    """A cut dump gives its first part or one clear line, never anything else."""
    text = SCALARS + "#0 0! 0\" 0# 0$ 0% #10 1% #20 0% 1!\n#30 b0 ! 1% $comment x $end\n"
    whole = track(text)
    for at in range(len(text)):
        with suppress(InputError):
            initial, changes = track(text[:at])
            assert changes[:-1] == whole[1][:len(changes) - 1] or changes == []
            assert initial == 0
