"""Coverage of the gateware: a bench in which a bus never answers reaches what it should, in both simulators."""

import json
import os
import subprocess
import sys
from pathlib import Path

import cocotb
import pytest
from hypermon.hdl.control import initiator

from ..benches.cocotb_stage import Stage

ROOT = Path(__file__).parents[3]
VERILATOR = f"""
from tests.hdl.harness import runner
from hypermon.hdl.control.initiator import Initiator
runner.run(runner.component(Initiator()), "{__name__}", "never_acknowledged", 1)
"""
AMARANTH = """
from tests.hdl.harness.stage import run
from hypermon.hdl.control.initiator import Initiator
dut = Initiator()
async def bench(ctx):
    await ctx.tick().repeat(2)
    ctx.set(dut.command.valid, 1)
    ctx.set(dut.reply.ready, 1)
    await ctx.tick().repeat(20)
run(dut, bench)
"""


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def never_acknowledged(dut):
    stage = Stage(dut)
    await stage.start(command_valid=0, command_payload=0, reply_ready=0, bus_ack=0, bus_rdata=0)
    for clock in range(20):
        await stage.step(command_valid=int(clock > 2), reply_ready=int(clock > 2))
        await stage.clock()


@pytest.mark.parametrize("script", [VERILATOR, AMARANTH], ids=["verilator", "amaranth"])
def test_bus_that_never_answers(tmp_path, script):
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=250,
                   env=os.environ | {"HYPERMON_COVERAGE": str(tmp_path), "PYTHONPATH": str(ROOT)})
    reached: dict[str, bool] = {}
    for file in tmp_path.glob("*.json"):
        for key, value in json.loads(file.read_text()).items():
            name, _, rest = key.partition(".py/")
            if name == "control/initiator":
                reached[rest] = reached.get(rest, False) or value
    lines = Path(initiator.__file__).read_text().split("\n")
    texts = {key: f"{lines[int(key.split('/')[0]) - 1].strip()} {key.partition('/')[2]}" for key in reached}
    bits = [key for key in reached if "/toggle/" in key]
    assert bool(bits) == (script == VERILATOR)
    assert {texts[key] for key, value in reached.items() if not value and key not in bits} - {
        # Whether a bench resets a stage in other states than the first is its own affair.
        'with m.State("SETTLE"): reset/SETTLE', 'with m.State("REQUEST"): reset/REQUEST',
        'with m.State("IDLE"): reset/IDLE',
    } == {
        "with m.If(ack): branch/If",
        "m.d.sync += [self.reply.p.eq(self.bus.rdata), self.reply.valid.eq(1), self.bus.req.eq(0)] line",
        'm.next = "IDLE" line',
    }
    assert {texts[key] for key, value in reached.items() if value and key not in bits} >= {
        "with m.If(ack): branch/else", "with m.If(self.command.valid & self.command.ready): branch/If",
        'm.next = "SETTLE" line', 'm.next = "REQUEST" line', 'with m.State("REQUEST"): state/REQUEST',
        "m.d.sync += self.bus.req.eq(1) line",
    }
