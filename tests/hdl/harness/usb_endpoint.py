"""What LUNA's device is to an endpoint, packet by packet, in Amaranth's simulator."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from luna.gateware.usb.usb2 import USBPacketID

__all__ = ["Bus", "CutError", "Cutting", "Ported", "simulate"]


def simulate(dut, bench, *others) -> None:
    """Runs a bench in the domain ``usb``, beside ``others``, which may go on for ever."""
    simulator = Simulator(dut)
    simulator.add_clock(1 / 60e6, domain="usb")
    for other in others:
        simulator.add_testbench(other, background=True)
    simulator.add_testbench(bench)
    simulator.run()


#: Clocks in which a packet begins; a host waits for a hundred (USB 2.0, 7.1.19.2).
_ANSWERS = 3


class Bus:
    """The host's packets at an endpoint's interface, and the answers.

    Parameters
    ----------
    context : of the testbench.
    interface : of the endpoint.
    rng : for the gaps between packets, and in the device's.
    """

    def __init__(self, context, interface, rng):
        self._context, self._interface, self._rng = context, interface, rng

    async def idle(self, clocks: int = 0) -> None:
        await self._context.tick("usb").repeat(clocks or self._rng.randrange(1, 6))

    async def _strobe(self, signal) -> None:
        self._context.set(signal, 1)
        await self._context.tick("usb")
        self._context.set(signal, 0)

    async def token(self, pid: USBPacketID | None, endpoint: int = 0) -> str | bytes | None:
        """A token; what the device answers, if it is asked to: ack, nak, stall, or data.

        None: a token to another device.
        """
        set_, token = self._context.set, self._interface.tokenizer
        set_(token.pid, 0 if pid is None else int(pid))
        for name in ("in", "out", "setup", "ping"):
            set_(getattr(token, f"is_{name}"), pid is not None and pid == USBPacketID[name.upper()])
        if pid is None:
            await self.idle()
            return None
        set_(token.endpoint, endpoint)
        await self._strobe(token.new_token)
        await self.idle()
        return await self._answer(token.ready_for_response)

    async def data(self, payload: bytes, good: bool = True) -> str | None:
        """Data behind a token; ``good``: their sum is right."""
        stream = self._interface.rx
        for byte in payload:
            self._context.set(stream.payload, byte)
            await self._strobe(stream.next)
            if self._rng.random() < 0.2:
                await self.idle()
        if not good:
            await self._strobe(self._interface.rx_invalid)
        await self.idle()
        return await self._answer(self._interface.rx_ready_for_response) if good else None

    async def acknowledge(self) -> None:
        """The host's handshake."""
        await self._strobe(self._interface.handshakes_in.ack)
        await self.idle()

    async def _answer(self, ready) -> str | bytes | None:
        get, set_ = self._context.get, self._context.set
        tx, out = self._interface.tx, self._interface.handshakes_out
        set_(ready, 1)
        said = [name for name in ("ack", "nak", "stall") if get(getattr(out, name))]
        await self._context.tick("usb")
        set_(ready, 0)
        self.pid = get(self._interface.tx_pid_toggle)
        for _ in range(_ANSWERS):
            if not get(tx.valid) and not said:
                await self._context.tick("usb")
        assert len(said) + get(tx.valid) <= 1
        if said or not get(tx.valid):
            return said[0] if said else None
        if get(tx.last & ~tx.first):
            await self._context.tick("usb")
            assert not get(tx.valid)
            return b""
        assert get(tx.first)
        packet = bytearray()
        for _ in range(4000):
            take = self._rng.random() < 0.8
            set_(tx.ready, take)
            byte, last, valid = get(tx.payload), get(tx.last), get(tx.valid)
            await self._context.tick("usb")
            if take:
                assert valid
                packet.append(byte)
                if last:
                    set_(tx.ready, 0)
                    return bytes(packet)
        raise AssertionError("a packet without an end")


class CutError(Exception):
    """What a host was doing has been cut off."""


class Cutting:
    """The context of a testbench that is cut off after a number of clocks, or few more.

    Parameters
    ----------
    context : the real one.
    clocks : until then.
    """

    def __init__(self, context, clocks: int):
        self._context, self._left, self.get, self.set = context, clocks, context.get, context.set

    def tick(self, domain: str):
        self._left -= 1
        if self._left < 0:
            raise CutError
        return self._context.tick(domain)


class Ported(wiring.Component):
    """An endpoint whose interface to the device has members, for its resets: see :mod:`.resets`.

    Parameters
    ----------
    endpoint : with an ``interface``.

    Members
    -------
    bus_tx_byte : ``tx.payload`` is a byte of a packet. An empty packet has none.
    """

    _GIVEN = ("tokenizer.new_token", "tokenizer.ready_for_response", "tokenizer.is_in", "tokenizer.is_out",
              "tokenizer.is_setup", "tokenizer.is_ping", "tokenizer.endpoint", "rx.payload", "rx.next",
              "rx_ready_for_response", "rx_invalid", "handshakes_in.ack", "tx.ready", "active_config")
    _TAKEN = ("tx.valid", "tx.payload", "tx.first", "tx.last", "tx_pid_toggle", "handshakes_out.ack",
              "handshakes_out.nak", "handshakes_out.stall", "address_changed", "new_address", "config_changed",
              "new_config")

    def __init__(self, endpoint):
        self.endpoint = endpoint
        own = dict(endpoint.signature.members.items())
        super().__init__({
            **own, **{self._name(path): In(len(self._of(path))) for path in self._GIVEN},
            **{self._name(path): Out(len(self._of(path))) for path in self._TAKEN}, "bus_tx_byte": Out(1)})

    @staticmethod
    def _name(path: str) -> str:
        return f"bus_{path.replace('.', '_')}"

    def _of(self, path: str):
        found = self.endpoint.interface
        for part in path.split("."):
            found = getattr(found, part)
        return found

    def elaborate(self, platform):
        m = Module()
        m.submodules.endpoint = inner = self.endpoint
        for path, member, value in inner.signature.flatten(inner):
            mine = self
            for part in path:
                mine = mine[part] if isinstance(part, int) else getattr(mine, part)
            m.d.comb += value.eq(mine) if member.flow is In else mine.eq(value)
        m.d.comb += [self._of(path).eq(getattr(self, self._name(path))) for path in self._GIVEN]
        m.d.comb += [getattr(self, self._name(path)).eq(self._of(path)) for path in self._TAKEN]
        tx, middle = inner.interface.tx, Signal()
        with m.If(tx.valid & tx.ready):
            m.d.usb += middle.eq(~tx.last)
        m.d.comb += self.bus_tx_byte.eq(tx.valid & (tx.first | middle))
        return m
