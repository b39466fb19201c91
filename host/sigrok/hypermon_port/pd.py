"""A protocol decoder for sigrok (libsigrokdecode, API 3); it runs in sigrok's own Python, without HYPERMON."""

# mypy: ignore-errors
import sigrokdecode as srd

NIBBLE, EVENT, WARNING, LOST = range(4)
STROBE, LOST_LINE = 4, 5


class Decoder(srd.Decoder):
    api_version = 3
    id = "hypermon_port"
    name = "HYPERMON port"
    longname = "HYPERMON 5-bit event port"
    desc = "Nibbles, and events framed from them, that a node writes to its 5-bit port."
    license = "bsd"
    # sigrok accepts lists only.
    inputs = ["logic"]  # noqa: RUF012
    outputs = []  # noqa: RUF012
    tags = ["Debug/trace"]  # noqa: RUF012
    channels = (
        {"id": "d0", "name": "D0", "desc": "Data, lowest bit"},
        {"id": "d1", "name": "D1", "desc": "Data"},
        {"id": "d2", "name": "D2", "desc": "Data"},
        {"id": "d3", "name": "D3", "desc": "Data, highest bit"},
        {"id": "strobe", "name": "STROBE", "desc": "Strobe"},
    )
    optional_channels = (
        {"id": "lost", "name": "LOST", "desc": "High while the board loses items"},
    )
    options = (
        {"id": "edge", "desc": "Active edge of the strobe", "default": "rising",
         "values": ("rising", "falling", "both")},
        {"id": "sample", "desc": "Data are taken before or after the edge", "default": "before",
         "values": ("before", "after")},
        {"id": "framing", "desc": "What nibbles are", "default": "none", "values": ("none", "event")},
        {"id": "timeout_ms", "desc": "An event that waits longer for its next nibble is aborted (ms)", "default": 10},
    )
    annotations = (
        ("nibble", "Nibble"),
        ("event", "Event"),
        ("aborted", "Aborted event"),
        ("lost", "Lost"),
    )
    annotation_rows = (
        ("nibbles", "Nibbles", (NIBBLE,)),
        ("events", "Events", (EVENT, WARNING)),
        ("losses", "Losses", (LOST,)),
    )

    def __init__(self):
        self.reset()

    def reset(self):
        self.samplerate = None
        self.nibbles = []
        self.begin = 0
        self.last = None  # sample and nibble of the one that is not shown yet
        self.lost_since = None

    def metadata(self, key, value):
        if key == srd.SRD_CONF_SAMPLERATE:
            self.samplerate = value

    def start(self):
        self.out = self.register(srd.OUTPUT_ANN)

    def say(self, begin, end, kind, *texts):
        self.put(begin, end, self.out, [kind, list(texts)])

    def decode(self):
        lines = [{line: "e"} for line in range(5)]
        if self.has_channel(LOST_LINE):
            lines.append({LOST_LINE: "e"})
        pins = self.wait({"skip": 0})
        if self.has_channel(LOST_LINE) and pins[LOST_LINE]:
            self.lost_since = self.samplenum
        while True:
            before, pins = pins, self.wait(lines)
            if self.matched[STROBE] and self.options["edge"] in ("both", "rising" if pins[STROBE] else "falling"):
                data = (before if self.options["sample"] == "before" else pins)[:4]
                self.nibble(sum(bit << place for place, bit in enumerate(data)))
            if len(lines) > 5 and self.matched[LOST_LINE]:
                if pins[LOST_LINE]:
                    self.lost_since = self.samplenum
                elif self.lost_since is not None:
                    self.say(self.lost_since, self.samplenum, LOST, "items lost", "lost", "L")

    def nibble(self, value):
        now = self.samplenum
        self.say(now, now + 1, NIBBLE, f"{value:X}")
        if self.options["framing"] == "none":
            return
        if self.nibbles and self.samplerate and (now - self.last) * 1000 > self.options["timeout_ms"] * self.samplerate:
            self.say(self.begin, self.last + 1, WARNING, "aborted", "A")
            self.nibbles = []
        self.last = now
        if not self.nibbles:
            if value == 0:
                return
            self.begin = now
        self.nibbles.append(value)
        if len(self.nibbles) == 1 + 2 * self.nibbles[0]:
            rest = self.nibbles[1:]
            data = bytes(low | high << 4 for low, high in zip(rest[::2], rest[1::2], strict=True))
            self.say(self.begin, now + 1, EVENT, f"event {data[0]} {data[1:].hex()}".rstrip(), str(data[0]))
            self.nibbles = []
