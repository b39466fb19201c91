"""Descriptors, read as a host reads them."""

import struct

import pytest
from hypermon.hdl.layout import USB_MANUFACTURER, USB_NAME, USB_PRODUCT, USB_STREAM, USB_VENDOR, UsbRequest
from hypermon.hdl.transport.usb.descriptors import Type, descriptors, microsoft_set


def parts(data: bytes) -> list[bytes]:
    found = []
    while data:
        assert 2 <= data[0] <= len(data)
        found.append(data[:data[0]])
        data = data[data[0]:]
    return found


@pytest.mark.parametrize(("high", "packet", "other"), [(True, 512, 64), (False, 64, 512)])
def test_device(high, packet, other):
    said = descriptors("A7", high)
    device = struct.unpack("<BBHBBBBHHHBBBB", said[Type.DEVICE, 0])
    assert device[:3] == (18, Type.DEVICE, 0x0201)
    assert device[6:9] == (64, USB_VENDOR, USB_PRODUCT)
    names = [said[Type.STRING, index][2:].decode("utf-16-le") for index in device[10:13]]
    assert names == [USB_MANUFACTURER, USB_NAME, "A7"]
    for kind, size in ((Type.CONFIGURATION, packet), (Type.OTHER_SPEED, other)):
        configuration, interface, endpoint = parts(said[kind, 0])
        assert configuration[1] == kind
        assert int.from_bytes(configuration[2:4], "little") == len(said[kind, 0])
        assert (interface[1], interface[4], interface[5]) == (Type.INTERFACE, 1, 0xff)
        assert struct.unpack("<BBBBHB", endpoint) == (7, Type.ENDPOINT, USB_STREAM, 2, size, 0)
    assert len(said[Type.QUALIFIER, 0]) == said[Type.QUALIFIER, 0][0] == 10


def test_full_speed_alone():
    kinds = {kind for kind, _ in descriptors("1", False, both=False)}
    assert not kinds & {Type.QUALIFIER, Type.OTHER_SPEED}


def test_microsoft():
    """The platform capability names the request and the length of what it gives (Microsoft OS 2.0, tables 4 to 15)."""
    bos, *capabilities = parts(descriptors("1", True)[Type.BOS, 0])
    assert int.from_bytes(bos[2:4], "little") == len(bos) + sum(map(len, capabilities))
    assert bos[4] == len(capabilities) == 2
    platform = capabilities[1]
    assert platform[4:20].hex() == "df60ddd88945c74c9cd2659d9e648a9f"
    assert struct.unpack("<IHBB", platform[20:]) == (0x06030000, len(microsoft_set()), UsbRequest.MICROSOFT, 0)
    head, rest = microsoft_set()[:10], microsoft_set()[10:]
    assert struct.unpack("<HHIH", head) == (10, 0, 0x06030000, len(microsoft_set()))
    features = []
    while rest:
        length, kind = struct.unpack_from("<HH", rest)
        features.append((kind, rest[4:length]))
        rest = rest[length:]
    assert features[0] == (3, b"WINUSB".ljust(16, b"\0"))
    kind, body = features[1]
    name_length = int.from_bytes(body[2:4], "little")
    value_length = int.from_bytes(body[4 + name_length:6 + name_length], "little")
    assert (kind, body[:2]) == (4, b"\x07\0")
    assert body[4:4 + name_length].decode("utf-16-le") == "DeviceInterfaceGUIDs\0"
    assert len(body) == 6 + name_length + value_length
    assert body[6 + name_length:].decode("utf-16-le").endswith("}\0\0")


@pytest.mark.parametrize("serial", ["a b", "ä", "x" * 127])
def test_serial(serial):
    with pytest.raises(ValueError, match="letters and digits"):
        descriptors(serial, True)
