"""What LUNA's device is to an endpoint, packet by packet, in Amaranth's simulator."""

from amaranth.sim import Simulator
from luna.gateware.usb.usb2 import USBPacketID

__all__ = ["Bus", "simulate"]


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
