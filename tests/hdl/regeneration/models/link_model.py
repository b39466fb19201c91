"""The link as docs/regeneration.md describes it, written from that page and not from the gateware."""

SYNC = [1, 1, 1, 0, 1, 0, 0, 0]
BYTES = 27
POWERS = (16, 14, 12, 11, 8, 5, 4, 2, 0)


def scrambler(count):
    """So many bits of x^7 + x^6 + 1, from all ones."""
    bits = [1] * 7
    for k in range(count):
        bits.append(bits[k] ^ bits[k + 1])
    return bits[7:]


SCRAMBLE = scrambler(248)


def crc(bits):
    """Sixteen bits, highest power first, of the remainder of all ones and then the message."""
    register = [1] * 16            # highest power first
    for bit in bits:
        out = register.pop(0) ^ bit
        register.append(0)
        if out:
            for power in POWERS[1:]:
                register[15 - power] ^= 1
    return register


def bits_of(value, count):
    return [value >> k & 1 for k in range(count)]


def number(bits):
    return sum(bit << k for k, bit in enumerate(bits))


def frame(lag, side, data):
    """The 256 bits of a frame."""
    assert len(data) == BYTES
    body = bits_of(lag, 12) + bits_of(side, 4) + [bit for byte in data for bit in bits_of(byte, 8)]
    body += crc(body)
    return SYNC + [a ^ b for a, b in zip(body, SCRAMBLE, strict=True)]


def opened(bits):
    """Lag, side channel and bytes of a frame; None if its sync or its check is wrong."""
    body = [a ^ b for a, b in zip(bits[8:], SCRAMBLE, strict=True)]
    if bits[:8] != SYNC or crc(body[:-16]) != body[-16:]:
        return None
    return number(body[:12]), number(body[12:16]), [number(body[k:k + 8]) for k in range(16, 232, 8)]


def nibbles(start, lag, data):
    """(clock, node, nibble, whether it continues an item) of a frame whose first bits are sent at clock ``start``."""
    at, more, found = start - lag, 0, []
    for byte in data:
        if byte & 0x80:
            found.append((at, byte >> 4 & 7, byte & 15, more))
        else:
            at, more = at + byte % 64, byte >> 6
    return found


def items(start, lag, data):
    """The same without the last column."""
    return [nibble[:3] for nibble in nibbles(start, lag, data)]


def counts(sides):
    """Counts, in order, of the side channels of one superframe; None stands for a frame that failed."""
    words = [sides[16 * c:16 * c + 16] for c in range(18)]
    return [None if None in word else number([side >> b & 1 for side in word for b in (2, 3)]) for word in words]
