"""The modules `machine` and `rp2` of MicroPython, as far as the node library needs them; they record all writes.

MicroPython itself also runs this file, so it uses only what MicroPython has.
"""

from array import array

#: (pin, level) of each write; words put into the FIFO; arguments of the state machine.
writes = []
fifo = []
made = []


class Pin:
    OUT = 1

    def __init__(self, number, mode=None, *, value=None):
        self.number = number
        if mode is not None:
            writes.append((number, value))

    def value(self, level):
        writes.append((self.number, level))



class PIO:
    OUT_LOW, SHIFT_RIGHT, JOIN_TX = 2, 1, 1


class StateMachine:
    def __init__(self, number, program, *, out_base, sideset_base):
        made.append({"machine": number, "program": program, "out": out_base.number, "side": sideset_base.number})

    def active(self, on):
        made[-1]["active"] = on

    def put(self, word):
        assert 0 <= word < 1 << 32
        assert made[-1]["active"] == 1
        fifo.append(word)


class Instruction:
    """The last word of a program, to which side-set and delay are added: bits 12, and 11 to 8."""

    def __init__(self, words):
        self.words = words

    def side(self, level):
        self.words[-1] |= level << 12
        return self

    def __getitem__(self, delay):
        assert 0 <= delay <= 15
        self.words[-1] |= delay << 8
        return self


def asm_pio(*, out_init, sideset_init, out_shiftdir, autopull, pull_thresh, fifo_join):
    """Assembles as the RP2040 Datasheet, 3.4, has it, all pins low at first; a program as MicroPython keeps it."""
    assert (out_init, sideset_init) == ((PIO.OUT_LOW,) * 4, PIO.OUT_LOW)
    shift = fifo_join << 30 | (pull_thresh & 31) << 25 | out_shiftdir << 19 | autopull << 17

    def assemble(function):
        words, labels, jumps, wraps = array("H"), {}, {}, {}

        def word(value):
            words.append(value)
            return Instruction(words)

        def jmp(condition, label=None):
            jumps[len(words)] = condition if label is None else label
            return word((0 if label is None else condition) << 5)

        names = {
            "pins": 0, "x": 1, "null": 3, "x_dec": 2, "jmp": jmp,
            "out": lambda to, bits: word(3 << 13 | to << 5 | bits & 31),
            "mov": lambda to, source: word(5 << 13 | to << 5 | source),
            "nop": lambda: word(5 << 13 | 2 << 5 | 2),
            "label": lambda name: labels.update({name: len(words)}),
            "wrap_target": lambda: wraps.update(first=len(words)),
            "wrap": lambda: wraps.update(last=len(words) - 1)}
        kept = dict(function.__globals__)
        function.__globals__.clear()
        function.__globals__.update(names)
        function()
        function.__globals__.clear()
        function.__globals__.update(kept)
        for at, label in jumps.items():
            words[at] |= labels[label]
        return [words, -1, -1, wraps["last"] << 12 | wraps["first"] << 7, shift, out_init, None, sideset_init]

    return assemble


class machine:  # noqa: N801
    hz = 125_000_000
    Pin = Pin

    @staticmethod
    def freq():
        return machine.hz


class rp2:  # noqa: N801
    PIO, StateMachine = PIO, StateMachine
    asm_pio = staticmethod(asm_pio)
