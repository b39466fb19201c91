"""Answers one IN token with one packet, and again until the host has it."""

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
    interface : LUNA's, of the endpoint; its ``tx`` is driven.
    endpoint : its number.

    Members
    -------
    go : with ``ready_for_response`` of an IN token to the endpoint: answer it with ``length`` bytes.
    length : bytes of the packet, held until ``acked``; 0 is a packet too.
    next, fetch : ``payload`` must be byte ``next`` a clock after ``fetch``, until the ``fetch`` behind it. ``next`` is
        from flip-flops, and may lie behind the packet's end.
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
        # The byte that is sent is in a register, and the one behind it at `payload` already: a PHY gives its word late
        # in a clock and wants its byte early in one, and no memory stands in between.
        held = Signal(8)
        left = Signal(10)
        last = Signal()       # left <= 1. LUNA ors `first` and `last` of all endpoints: 0 in one that is silent.
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
            # Not at once: through `tx` there is a long way from `go` to `fetch`.
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
                # A handshake on the bus may answer what another device has sent: the last token says whose it is,
                # and LUNA's is 0 if it was addressed elsewhere.
                with m.If(heard.ack & token.is_in & (token.endpoint == self._endpoint)):
                    m.d.comb += self.acked.eq(1)
                    m.next = "IDLE"
                with m.Elif(token.new_token):
                    m.next = "IDLE"
        return m
