"""Value change dumps: scalars, vectors, scopes, unknown levels, timescales, malformed ones."""

from contextlib import suppress

import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.port_mapping import Mapping
from hypermon.sim.stimulus.port_rule import complaints
from hypermon.sim.stimulus.rows import joined
from hypermon.sim.stimulus.stimulus import load
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
        (one,) = read_vcd(InputFile(str(path)), [Mapping("", str(path), 0, channels, None, None)])
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


def test_femtoseconds_beyond_64_bits(track):
    """The picoseconds fit."""
    assert track(SCALARS.replace("1 ns", "1 fs") + "#0 0! #10000000000000000001 1!")[1] == [(10_000_000_000_000_001, 1)]


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


def test_values_that_are_longer_than_they_need(track):
    """Zeros, or the same unknown value, in front of a value change nothing."""
    assert track(VECTOR + "#0 b0000 v bxxxxxx v 0s #1 b00000101 v b01 s", VECTOR_NAMES) == (0, [(1000, 21)])
    assert track(SCALARS.replace("$scope", "$timescale 1 ns $end $scope") + "#0 0% #1 1%") == (0, [(1000, 16)])


@pytest.mark.parametrize(("text", "said"), [
    ("#2 $dumpoff x% $end #9 $dumpon 0% $end #12 1%", "1 time, from 2,000 ps to 9,000 ps"),
    ("#2 $dumpoff x% $end #9 $dumpon 0% $end #12 1% #13 $dumpoff x% $end", "2 times, the first from 2,000 ps to 9,000"),
    ("#2 $dumpoff x% $end #5 $dumpoff x% $end #8", "1 time, from 2,000 ps to its end"),
    ("#2 $dumpoff x% $end $dumpon 0% $end #12 1%", None), ("#2 $dumpon 0% $end #3 1%", None)])
def test_a_dump_that_was_off(tmp_path, text, said):
    """What changed meanwhile is not in the file, and this is announced."""
    path = tmp_path / "x.vcd"
    path.write_text(SCALARS + "#0 0! 0% #1 1! " + text)
    (one,) = read_vcd(InputFile(str(path)), [Mapping("", str(path), 0, NAMES, None, None)])
    if said is None:
        assert one.notes == ()
    else:
        assert f"{path}: changes are missing while the dump was off ($dumpoff): {said}" in one.notes[0]
        assert len(one.notes) == 1


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
    assert channels_of_vcd(InputFile(str(tmp_path / "x.vcd"))) == ["a.e", "b.e", "b.f", "b.w[1:0]", "c.f"]


def test_nine_values(track):
    """Of VHDL, in variables of one bit and in vectors, mapped and not: L and H are levels, the others are not."""
    text = VECTOR.replace("$enddefinitions", "$var reg 1 u unused $end $enddefinitions")
    levels = {"0": 0, "1": 1, "l": 0, "L": 0, "h": 1, "H": 1}
    for value in "01xXzZuUwWlLhH-":
        after = levels.get(value, 1)
        assert track(text + f"#0 b0001 v 1s {value}u #1 b000{value} v #2 {value}s #3 {value}u", VECTOR_NAMES) == (
            17, [(1000, 16), (2000, 0)] if after == 0 else []), value
        assert track(text + f"#0 b0000 v 0s #1 b{value} v #2 {value}s", VECTOR_NAMES) == (
            0, [(1000, 1), (2000, 17)] if levels.get(value) == 1 else []), value
        # Unknown values extend a short vector, levels do not.
        assert track(text + f"#0 b1111 v 0s #1 b{value}0 v", VECTOR_NAMES)[1] == (
            [(1000, 14)] if value not in levels else [(1000, 2 * levels[value])]), value


def test_values_with_blanks(track):
    text = VECTOR + "#0\n0 s\nb0 v\n#1\n1\ts\n#2\nb 101\n"
    with pytest.raises(InputError, match="no variable has the code '101'"):
        track(text, VECTOR_NAMES)
    assert track(VECTOR + "#0\n0 s\nb0 v\n#1\n1\ts\n#2\nb0b101 v\n", VECTOR_NAMES) == (0, [(1000, 16), (2000, 21)])


ROOT = ("$timescale 1ns $end $var reg 4 ! d [3:0] $end $var reg 1 \" s $end $scope module dut $end "
        "$var reg 4 # d [3:0] $end $var reg 1 $ s $end $scope module sub $end "
        "$var reg 1 % d $end $upscope $end $upscope $end $enddefinitions $end "
        "#0 b0 ! 0\" b0 # 0$ 0% #1 b101 ! #2 1\" #3 b1111 # #4 1$ #5 1%")


def test_a_full_name_wins(track):
    """A variable outside any scope has the name of one inside."""
    bits = [f"d[{bit}]" for bit in range(4)]
    assert track(ROOT, (*bits, "s")) == (0, [(1000, 5), (2000, 21)])
    assert track(ROOT, (*(f"dut.{bit}" for bit in bits), "dut.s")) == (0, [(3000, 15), (4000, 31)])
    assert track(ROOT, ("dut.sub.d", "sub.d", "sub.d", "sub.d", "s")) == (0, [(2000, 16), (5000, 31)])
    # The full name of a vector, though a bit inside a scope has that name, too.
    with pytest.raises(InputError, match=r"channel d has 4 bits: name one, such as d\[0\]"):
        track(ROOT, ("d", "d", "d", "d", "s"))


def test_equal_full_names(track):
    text = ("$timescale 1ns $end $scope module a $end $var wire 1 ! e $end $var wire 2 v d [1:0] $end "
            "$var wire 1 k e $end $var wire 2 w d [3:2] $end $upscope $end $scope module b $end $var wire 1 m e $end "
            "$upscope $end $enddefinitions $end #0 0! 0k 0m b0 v b0 w #1 1! #2 1k #3 1m #4 b10 v #5 b10 w")
    # The parts of a vector; the others by their order.
    assert track(text, ("d[0]", "d[1]", "d[2]", "d[3]", "a.e@1")) == (0, [(1000, 16), (4000, 18), (5000, 26)])
    assert track(text, ("a.e@2", "e@1", "e@2", "e@3", "b.e")) == (0, [(1000, 2), (2000, 7), (3000, 31)])
    for name, reason in (("a.e", r"channel a\.e may be a\.e@1 or a\.e@2"), ("e", r"channel e may be a\.e or b\.e"),
                         ("a.e@3", r"unknown channel a\.e@3"), ("e@0", "unknown channel e@0"),
                         ("e@" + "9" * 5000, "unknown channel")):
        with pytest.raises(InputError, match=reason):
            track(text, (name, "b.e", "b.e", "b.e", "b.e"))


def test_names_beyond_ascii(tmp_path):
    """UTF-8, with some bytes that would be blanks in Latin-1; else Latin-1, which is reported. A byte order mark."""
    names = ["à", "Größe", "\u3000", "x", "e"]
    text = "$timescale 1ns $end $scope module Ⅷ $end " + "".join(
        f"$var wire 1 {code} {name} $end " for code, name in zip(CODES, names, strict=True))
    text += "$upscope $end $enddefinitions $end #0 0! 0\" 0# 0$ 0% #1 1! 1\" #2 1# 1%"
    path = tmp_path / "x.vcd"
    for data, channels, latin in (
            (text.encode(), names, False), (b"\xef\xbb\xbf" + text.encode(), [f"Ⅷ.{name}" for name in names], False),
            (text.replace("Ⅷ", "M").replace("\u3000", "ÿ").encode("latin-1"), ["à", "Größe", "ÿ", "x", "M.e"], True)):
        path.write_bytes(data)
        made = load([path], ports=["3=" + ",".join(channels)])
        assert made.port.tolist() == [3, 23]
        assert complaints(made, 1_000_000_000, kept=0) == (
            [f"{path}: names that are not UTF-8 were read as Latin-1"] if latin else [])


def test_names_with_blanks_and_commas(tmp_path, track):
    text = ("$timescale 1ns $end $scope module my top $end $var wire 1 ! my bit $end $var wire 1 a a,b $end "
            "$var wire 4 v my data [3:0] $end $var wire 1 k bit [0] $end $var wire 1 s \\str[0] obe $end $upscope $end "
            "$enddefinitions $end #0 0! 0a b0 v 0k 0s #1 1! #2 1a #3 1k #4 b1000 v #5 1s")
    path = tmp_path / "x.vcd"
    path.write_text(text)
    shown = ["my top.my bit", "my top.a\\,b", "my top.my data[3:0]", "my top.bit[0]", "my top.str[0] obe"]
    assert channels_of_vcd(InputFile(str(path))) == shown
    port = ",".join([*shown[:2], "my top.my data[3]", *shown[3:]])
    assert load([path], ports=[f"0={port}"]).port.tolist() == [1, 3, 11, 15, 31]
    assert load([path], ports=["0=my bit,a\\,b,my data[3],bit[0],str[0] obe"]).port.tolist() == [1, 3, 11, 15, 31]
    with pytest.raises(InputError, match=r"unknown channel a\\,c; there are my top\.my bit, my top\.a\\,b, my"):
        load([path], ports=["0=a\\,c,a\\,b,my bit,my bit,my bit"])


def test_names_with_backslashes(tmp_path):
    """Names that end with a backslash, as those of VHDL may; written as they are shown, or as in the file."""
    names = ["my sig\\", "b,\\", "c\\d", "e\\\\", "f\\"]
    text = "$timescale 1ns $end " + "".join(
        f"$var wire 1 {code} \\{name} $end " for code, name in zip(CODES, names, strict=True))
    text += "$enddefinitions $end #0 0! 0\" 0# 0$ 0% #1 1! #2 1\" #3 1# #4 1$ #5 1%"
    path = tmp_path / "x.vcd"
    path.write_text(text)
    shown = channels_of_vcd(InputFile(str(path)))
    assert shown == ["my sig\\\\", "b\\,\\\\", "c\\\\d", "e\\\\\\\\", "f\\\\"]
    for written in (shown, [*shown[:2], names[2], shown[3], names[4]]):
        assert load([path], ports=["0=" + ",".join(written)]).port.tolist() == [1, 3, 7, 15, 31]


@pytest.mark.parametrize(("body", "line", "reason"), [
    ("#0\n0!\n#5\n1!\n#4\n0!\n", 5, "time decreases: 4 after 5"), ("#0\n#x\n", 2, "time is not a number: 'x'"),
    ("#-1\n", 1, "time is not a number"), ("#\n", 1, "time is not a number"), ("#1.5\n", 1, "time is not a number"),
    ("#0\n1?\n", 2, "no variable has the code '?'"), ("#0\nb101 ?\n", 2, "no variable has the code"),
    ("#0\nb101", 2, "the file ends within a change: it was cut short"),
    ("#0\n1", 2, "the file ends within a change"), ("#0\n1!\n$comment 0! $en d\n#1\n0!", 3, "$comment has no $end"),
    ("#0\nb10 !\n", 2, "the value b10 has 2 bits; its variable has 1"), ("#0\nbx0 !\n", 2, "has 2 bits"),
    ("#0\nr1.5 !\n", 2, "not a value of a bit or vector: 'r1.5'"), ("#0\nson !\n", 2, "not a value of a bit"),
    ("#0\nb12 !\n", 2, "not a value: 'b12'"),
    ("#0\nb !", 2, "not a value"),
    ("#0\nname\n", 2, "not a value change: 'name'"), ("#0\nhello\n", 2, "no variable has the code 'ello'"),
    ("#0\n$foo\n", 2, "not a value change"),
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
    (SCALARS.replace("1 ns", "fast"), 1, "not a timescale"),
    (SCALARS.replace("$scope", "$timescale 10 ns $end $scope"), 2, "a second timescale, 10 ns, which differs"),
    ("\n$timescale 1 ns\n", 2, "$timescale has no $end"),
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
            read_vcd(InputFile(str(path)), [])


def test_cut_anywhere(track):
    """A cut dump gives its first part or one clear line, never anything else."""
    text = SCALARS + "#0 0! 0\" 0# 0$ 0% #10 1% #20 0% 1!\n#30 b0 ! 1% $comment x $end\n"
    whole = track(text)
    for at in range(len(text)):
        with suppress(InputError):
            initial, changes = track(text[:at])
            assert changes[:-1] == whole[1][:len(changes) - 1] or changes == []
            assert initial == 0
