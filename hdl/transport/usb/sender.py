"""Answers an IN token with one packet, and repeats it until the host has it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from luna.gateware.usb.usb2.endpoint import EndpointInterface
from luna.gateware.usb.usb2.packet import HandshakeExchangeInterface, TokenDetectorInterface

__all__ = ["Sender"]


class Sender(wiring.Component):
    """The packet side of an IN endpoint, in the domain ``usb``.

    Parameters
    ----------
    interface : LUNA's interface of the endpoint; its ``tx`` is driven.
    endpoint : number of the endpoint.

    Members
    -------
    go : with ``ready_for_response`` of an IN token to the endpoint: answer it with ``length`` bytes.
    length : bytes of the packet, held until ``acked``; 0 is a packet, too.
    next, fetch : ``payload`` must be byte ``next`` one clock after ``fetch``, until the next ``fetch``. ``next`` is
        from flip-flops, and may be beyond the packet's end.
    payload : a byte of the packet.
    acked : the host has acknowledged the packet. If it does not, the next token may ask for it again.
    """

    def __init__(self, interface: EndpointInterface, endpoint: int):
        self._interface, self._endpoint = interface, endpoint
        super().__init__({
            "go": In(1), "length": In(10), "next": Out(11), "fetch": Out(1), "payload": In(8), "acked": Out(1)})

    def elaborate(self, platform):
        m = Module()
        token: TokenDetectorInterface = self._interface.tokenizer
        heard: HandshakeExchangeInterface = self._interface.handshakes_in
        tx = self._interface.tx
        # The byte that is sent is in a register, and the next one is at `payload` already: a PHY's ready comes late
        # in a clock, and it needs its byte early in one, so no memory may be in between.
        held = Signal(8)
        left = Signal(10)
        last = Signal()       # left <= 1. LUNA ORs `first` and `last` of all endpoints: 0 in one that is silent.
        m.d.comb += tx.payload.eq(held)
        with m.If(self.fetch):
            m.d.usb += [self.next.eq(self.next + 1), held.eq(self.payload)]
        with m.If(tx.valid & tx.ready):
            m.d.usb += [left.eq(left - 1), last.eq(left == 2)]
        with m.FSM(domain="usb"):
            with m.State("IDLE"):
                m.d.usb += [self.next.eq(0), left.eq(self.length), last.eq(self.length <= 1)]
                with m.If(self.go):
                    m.next = "FIRST"
                    with m.If(self.length == 0):
                        m.next = "EMPTY"
            # Not at once: the path through `tx` from `go` to `fetch` is long.
            with m.State("EMPTY"):
                m.d.comb += [tx.valid.eq(1), tx.last.eq(1)]
                m.next = "SENT"
            with m.State("FIRST"):
                m.d.comb += self.fetch.eq(1)
                m.next = "SECOND"
            with m.State("SECOND"):
                m.d.comb += self.fetch.eq(1)
                m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [tx.valid.eq(1), tx.first.eq(1), tx.last.eq(last), self.fetch.eq(tx.ready)]
                with m.If(tx.ready):
                    m.next = "SENT"
                    with m.If(~last):
                        m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [tx.valid.eq(1), tx.last.eq(last), self.fetch.eq(tx.ready)]
                with m.If(tx.ready & last):
                    m.next = "SENT"
            with m.State("SENT"):
                # A handshake on the bus may answer a packet of another device: the last token identifies the device,
                # and LUNA's is 0 if it was addressed elsewhere.
                with m.If(heard.ack & token.is_in & (token.endpoint == self._endpoint)):
                    m.d.comb += self.acked.eq(1)
                    m.next = "IDLE"
                with m.Elif(token.new_token):
                    m.next = "IDLE"
        return m
