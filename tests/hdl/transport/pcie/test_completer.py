"""Completer: every request against a model of the registers, one completion for each that wants one, whoever stalls."""

import functools

import cocotb
import pytest
from hypermon.hdl.control.initiator import access_layout
from hypermon.hdl.layout import PCIE_BASE, PCIE_END
from hypermon.hdl.transport.pcie.completer import Completer
from hypermon.hdl.transport.pcie.tlp import CompletionStatus, Kind, byte_count, completion_layout, request_layout

from ...benches.case import CASE, met, rng
from ...benches.cocotb_stage import Stage, fields, pack
from ...harness import stage
from ...harness.resets import same_as_fresh
from ...harness.runner import component, run, seeds

REQUESTS = 1500
#: Clocks until an access is given up.
PATIENCE = 200


def drawn(choose):
    """A request, and its beats as words of data."""
    kind = choose.choices(list(Kind), (8, 8, 1, 2, 2))[0]
    length = 1 if choose.random() < 0.7 else choose.choice([2, 3, 5, 32, 1024])
    request = {
        "kind": kind, "offset": choose.choice([choose.randrange(8), PCIE_BASE // 4 + choose.randrange(4),
                                               choose.getrandbits(11)]),
        "length": length, "first_be": choose.randrange(16), "last_be": 0 if length == 1 else choose.randrange(1, 16),
        "requester": choose.getrandbits(16), "tag": choose.getrandbits(10), "tc": choose.getrandbits(3),
        "attr": choose.getrandbits(3)}
    carries = kind == Kind.WRITE or (kind not in (Kind.READ, Kind.LOCKED) and choose.random() < 0.5)
    dwords = length if carries else 0
    if carries and choose.random() < 0.15:
        dwords = choose.choice([0, length - 1, length + 1])
    beats = [min(4, dwords - at) for at in range(0, dwords, 4)] or [0]
    bad = choose.randrange(len(beats)) if choose.random() < 0.1 else None
    return request, [{"data": choose.getrandbits(128), "dwords": n, "bad": int(k == bad),
                      "last": int(k == len(beats) - 1)} for k, n in enumerate(beats)]


def _span(r):
    """Lower address and byte count of the completion of a memory read."""
    first = min(k for k in range(4) if r["first_be"] >> k & 1 or not r["first_be"])
    return 4 * r["offset"] + first & 127, byte_count(r["length"], r["first_be"], r["last_be"])


class Model:
    """What the contract says: registers, accesses, completions."""

    def __init__(self):
        self.registers, self.accesses, self.completions = {}, [], []
        self.dropped = self.refused = 0

    def request(self, r, beats):
        good = r["length"] == 1 and [b["dwords"] for b in beats] == [1] and not beats[0]["bad"]
        echo = {name: r[name] for name in ("requester", "tag", "tc", "attr")}
        if r["kind"] == Kind.READ and r["length"] == 1:
            word = self.access(0, r) if r["first_be"] else 0
            lower, count = _span(r)
            self.completions.append({"status": CompletionStatus.SUCCESS, "dwords": 1, "lower": lower, "bytes": count,
                                     "locked": 0, "data": word, **echo})
        elif r["kind"] in (Kind.READ, Kind.NONPOSTED, Kind.LOCKED):
            self.refused += 1
            lower, count = _span(r) if r["kind"] != Kind.NONPOSTED else (0, 4)
            self.completions.append({"status": CompletionStatus.UNSUPPORTED, "dwords": 0, "lower": lower,
                                     "bytes": count, "locked": int(r["kind"] == Kind.LOCKED), **echo})
        elif r["kind"] == Kind.POSTED or not good:
            self.dropped += 1
        elif r["first_be"]:
            old = self.access(0, r) if r["first_be"] != 15 else 0
            mask = sum(0xff << 8 * k for k in range(4) if r["first_be"] >> k & 1)
            self.access(1, r, old & ~mask | beats[0]["data"] & mask)

    def access(self, write, r, word=0):
        address = 4 * r["offset"]
        self.accesses.append((write, address, word if write else None))
        if write:
            self.registers[address] = word
        return self.registers.get(address, address * 0x10001)


async def _started(dut):
    stage = Stage(dut)
    await stage.start(i_valid=0, i_payload=0, o_ready=0, command_ready=0, reply_valid=0, reply_payload=0, own=0, down=0,
                      closed=0)
    return stage


class Board:
    """Registers downstream of the completer, the link's own among them: takes accesses and answers them, both after a
    time. A board that is ``silent`` answers only for the link's own."""

    def __init__(self, stage, choose, quick):
        self.stage, self.choose, self.quick = stage, choose, quick
        self.registers, self.accesses, self.owed = {}, [], {}
        self.silent = False

    def before(self):
        due = [own for own in self.owed if own or not self.silent]
        answers = bool(due) and self.choose.random() < self.quick
        # With no answer, or with one of the other kind, the word means nothing.
        own = max(due) if answers else self.choose.getrandbits(1)
        self.stage.put(reply_valid=int(answers), own=int(own),
                       reply_payload=self.owed[own] if answers else self.choose.getrandbits(32),
                       command_ready=int(self.choose.random() < self.quick))

    def after(self):
        if self.stage.get("reply_valid"):
            assert self.stage.get("reply_ready")
            del self.owed[bool(self.stage.get("own"))]
        if self.stage.get("command_valid") and self.stage.get("command_ready"):
            a = fields(access_layout(), self.stage.get("command_payload"))
            self.accesses.append((a["write"], a["addr"], a["wdata"] if a["write"] else None))
            if a["write"]:
                self.registers[a["addr"]] = a["wdata"]
            own = PCIE_BASE <= a["addr"] < PCIE_END
            assert own not in self.owed, "one access at a time"
            self.owed[own] = self.registers.get(a["addr"], a["addr"] * 0x10001)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def requests(dut):
    choose, stage = rng(), await _started(dut)
    model, board = Model(), Board(stage, choose, choose.choice([0.15, 0.5, 1]))
    giving, taking = choose.choice([0.2, 1]), choose.choice([0.2, 1])
    given = [drawn(choose) for _ in range(REQUESTS)]
    for one in given:
        model.request(*one)
    beats = [pack(request_layout(), **r, **beat) for r, parts in given for beat in parts]
    found, at, offered, idle = [], 0, False, 0
    while idle < 3 * PATIENCE:
        offered = offered or (at < len(beats) and choose.random() < giving)
        board.before()
        await stage.step(i_valid=int(offered), i_payload=beats[at] if offered else choose.getrandbits(180),
                         o_ready=int(choose.random() < taking))
        idle = 0 if at < len(beats) else idle + 1
        if offered and stage.get("i_ready"):
            at, offered = at + 1, False
        board.after()
        if stage.get("o_valid") and stage.get("o_ready"):
            found.append(fields(completion_layout(), stage.get("o_payload")))
        await stage.clock()
    assert board.accesses == model.accesses
    assert len(found) == len(model.completions)
    for got, wanted in zip(found, model.completions, strict=True):
        assert {name: got[name] for name in wanted} == wanted
    assert (stage.get("dropped"), stage.get("refused"), stage.get("timeouts")) == (model.dropped, model.refused, 0)
    met({"dropped": model.dropped, "refused": model.refused, "all enables": len({r["first_be"] for r, _ in given}) ==
    16,
         "long": sum(r["length"] > 4 for r, _ in given)})


def _single(kind, offset, word=0, be=15, tag=1):
    return pack(request_layout(), kind=kind, offset=offset, length=1, first_be=be, tag=tag, data=word, last=1,
                dwords=int(kind == Kind.WRITE))


async def _ask(stage, board, beat, clocks=4 * PATIENCE):
    """Offers one beat; the completion, or None if there is none in that time."""
    offered, found = True, None
    for clock in range(clocks):
        board.before()
        await stage.step(i_valid=int(offered), i_payload=beat, o_ready=1)
        if offered and stage.get("i_ready"):
            offered = False
        board.after()
        if stage.get("o_valid"):
            assert found is None, "one completion for each request"
            found = fields(completion_layout(), stage.get("o_payload")) | {"clock": clock}
        await stage.clock()
    assert not offered
    return found


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def silence(dut):
    """A board that does not answer costs its reads an error and its writes a count, and no request waits for it."""
    choose, stage = rng(), await _started(dut)
    board = Board(stage, choose, 1)
    board.silent = True
    own = PCIE_BASE // 4 + 2
    found = await _ask(stage, board, _single(Kind.READ, 3))
    assert found["status"] == CompletionStatus.ABORT
    assert found["dwords"] == 0
    assert PATIENCE <= found["clock"] < PATIENCE + 10
    assert stage.get("busy")
    again = await _ask(stage, board, _single(Kind.READ, 3))
    assert again["status"] == CompletionStatus.ABORT
    assert again["clock"] < 10
    assert await _ask(stage, board, _single(Kind.WRITE, 3, 7)) is None
    assert len(board.accesses) == 1
    assert (stage.get("timeouts"), stage.get("dropped")) == (3, 1)
    # The link's own registers are reached meanwhile.
    for word in (5, 6):
        assert await _ask(stage, board, _single(Kind.WRITE, own, word)) is None
        assert await _ask(stage, board, _single(Kind.WRITE, own, word << 24, be=8)) is None
        found = await _ask(stage, board, _single(Kind.READ, own))
        assert (found["status"], found["data"]) == (CompletionStatus.SUCCESS, word << 24 | word)
        assert found["clock"] < 10
    assert (stage.get("timeouts"), stage.get("dropped"), stage.get("busy")) == (3, 1, 1)
    board.silent = False
    assert await _ask(stage, board, _single(Kind.WRITE, own, 0), 20) is None
    assert not stage.get("busy")
    whole = await _ask(stage, board, _single(Kind.READ, 5))
    assert whole["status"] == CompletionStatus.SUCCESS
    assert whole["data"] == 20 * 0x10001


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def late_writes(dut):
    """A write that the board answers late is carried out once and is not counted as dropped; one of some bytes, whose
    read is late, changes nothing."""
    choose, stage = rng(), await _started(dut)
    board = Board(stage, choose, 1)
    for be, written, dropped in ((15, 7, 0), (3, 7, 1)):
        board.silent = True
        assert await _ask(stage, board, _single(Kind.WRITE, 3, 0x70007 if be == 3 else 7, be)) is None
        assert stage.get("busy")
        board.silent = False
        found = await _ask(stage, board, _single(Kind.READ, PCIE_BASE // 4), 20)
        assert found["status"] == CompletionStatus.SUCCESS
        assert not stage.get("busy")
        found = await _ask(stage, board, _single(Kind.READ, 3))
        assert (found["status"], found["data"]) == (CompletionStatus.SUCCESS, written)
        assert stage.get("dropped") == dropped
    assert stage.get("timeouts") == 2
    assert [a[0] for a in board.accesses if a[1] == 12] == [1, 0, 0, 0]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def resets(dut):
    """After a reset of the link, no completion appears for a request of before; its access is finished."""
    choose, stage = rng(), await _started(dut)
    board = Board(stage, choose, CASE["quick"])
    for wait in range(60):
        offered = True
        for clock in range(60 + wait):
            board.before()
            await stage.step(i_valid=int(offered), i_payload=_single(Kind.READ, 9, tag=wait), down=int(clock >= wait),
                             o_ready=int(clock >= wait))
            if offered and (stage.get("i_ready") or clock >= wait):
                offered = False
            board.after()
            assert clock <= wait or not stage.get("o_valid")
            await stage.clock()
        for _ in range(60):
            board.before()
            await stage.step(down=0, o_ready=1)
            board.after()
            assert not stage.get("o_valid"), "a completion from before the reset"
            await stage.clock()
        found = await _ask(stage, board, _single(Kind.READ, 2, tag=512 + wait), 100)
        assert (found["tag"], found["data"]) == (512 + wait, 8 * 0x10001)


@functools.cache
def simulator():
    return component(Completer(PATIENCE), "pcie_completer")


@pytest.mark.parametrize("seed", seeds(6, fast=4))
def test_requests(seed):
    run(simulator(), __name__, "requests", seed)


@pytest.mark.parametrize("case", ["silence", "late_writes"])
def test_late(case):
    run(simulator(), __name__, case, 0)


@pytest.mark.parametrize("quick", [1, 0.2])
def test_resets(quick):
    run(simulator(), __name__, "resets", 0, quick=quick)


def _answered_at(kind, when):
    """One access whose answer comes that many clocks after its command; None: never. Its completion's status, the
    number of time-outs, whether the board is busy at the end, and the clock in which it became busy."""
    dut, found, busy_since = Completer(patience=9), [], []

    async def bench(ctx):
        ctx.set(dut.i.p, {"kind": kind, "length": 1, "first_be": 15, "last": 1, "dwords": int(kind == Kind.WRITE)})
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.command.ready, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        while not ctx.get(dut.command.valid):
            await ctx.tick()
        for clock in range(40):
            ctx.set(dut.reply.valid, clock == when)
            if ctx.get(dut.busy) and not busy_since:
                busy_since.append(clock)
            if ctx.get(dut.o.valid):
                found.append(ctx.get(dut.o.p.status))
            await ctx.tick()
        found.append((ctx.get(dut.timeouts), ctx.get(dut.busy)))
    stage.run(dut, bench)
    return found, busy_since[0] if busy_since else None


@pytest.mark.parametrize("kind", [Kind.READ, Kind.WRITE])
def test_answers_around_the_last_clock(kind):
    """An answer in the last clock of the patience counts; one a clock later is late, and ends the busy time."""
    _, given_up = _answered_at(kind, None)
    success, abort = ([[status] if kind == Kind.READ else [] for status in (
        CompletionStatus.SUCCESS, CompletionStatus.ABORT)])
    for when in range(given_up - 3, given_up + 3):
        found, _ = _answered_at(kind, when)
        in_time = when < given_up
        assert found == [*(success if in_time else abort), (int(not in_time), 0)], when


def test_reset():
    """Requests of one dword, most of them, at a board that is slow."""
    layout = request_layout()

    def request(rng):
        single = rng.random() < 0.7
        return layout.const({
            "kind": rng.choice((*Kind, Kind.READ, Kind.WRITE)), "offset": rng.getrandbits(11),
            "length": 1 if single else 3, "first_be": rng.choice((15, 15, 0, rng.getrandbits(4))),
            "tag": rng.getrandbits(8), "data": rng.getrandbits(32), "dwords": 1,
            "last": single or rng.getrandbits(1)}).as_value().value

    same_as_fresh(lambda: Completer(12), {
        "i.payload": request, "reply.valid": lambda rng: rng.random() < 0.1, "down": lambda rng: rng.random() < 0.02,
        "closed": lambda rng: rng.random() < 0.05})
