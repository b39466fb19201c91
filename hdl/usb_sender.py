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
    next : which of its bytes ``payload`` must be a clock later.
    payload : a byte of the packet.
    acked : the host has acknowledged the packet. If it does not, the next token may ask for it again.
    """

    def __init__(self, interface: EndpointInterface, endpoint: int):
        self._interface, self._endpoint = interface, endpoint
        super().__init__({
            "go": In(1), "length": In(10), "next": Out(10), "payload": In(8), "acked": Out(1)})

    def elaborate(self, platform):
        m = Module()
        token: TokenDetectorInterface = self._interface.tokenizer
        heard: HandshakeExchangeInterface = self._interface.handshakes_in
        tx = self._interface.tx
        at = Signal(10)
        m.d.comb += [tx.payload.eq(self.payload), tx.first.eq(0)]
        with m.FSM(domain="usb"):
            with m.State("IDLE"):
                m.d.usb += at.eq(0)
                with m.If(self.go):
                    m.next = "SEND"
                    with m.If(self.length == 0):
                        m.next = "EMPTY"
            # Not at once: through `tx` there is a long way from `go` to `next`.
            with m.State("EMPTY"):
                m.d.comb += [tx.valid.eq(1), tx.last.eq(1)]
                m.next = "SENT"
            with m.State("SEND"):
                m.d.comb += [
                    tx.valid.eq(1), tx.first.eq(at == 0), tx.last.eq(at + 1 == self.length),
                    self.next.eq(at + tx.ready),
                ]
                m.d.usb += at.eq(self.next)
                with m.If(tx.ready & tx.last):
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
