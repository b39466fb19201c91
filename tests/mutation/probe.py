"""Says what the gateware elaborates to, as a hash: of boards that have all stages, and of every kind of memory.

Run in a tree of sources, once for each mutant: one that does not elaborate is none, nor is one that changes nothing.
"""

import gc
import hashlib
import warnings

from amaranth.hdl import Fragment
from hypermon.hdl.capture import Capture
from hypermon.hdl.layout import Extra, Geometry, Sink
from hypermon.hdl.lib.ram import RAM_KINDS, Ram
from hypermon.hdl.transport.pcie.link import PcieLink
from hypermon.hdl.transport.pcie.series_7 import Series7
from hypermon.hdl.transport.pcie.ultrascale_plus import UltrascalePlus

SMALL = {"vector_depth": 256, "frame_depth": 16}
DESIGNS = (
    lambda: Capture(Geometry(2, sinks=tuple(Sink), phases=2, store_depth=64, **SMALL)),
    lambda: Capture(Geometry(2, sync=False, beat_bytes=2, **SMALL)),
    lambda: Capture(Geometry(9, sinks=tuple(Sink), links=1, **SMALL)),
    lambda: Capture(Geometry(2, sinks=tuple(Sink), extras=tuple(Extra), **SMALL)),
    *(lambda kind=kind, shape=shape: Ram(*shape, kind)
      for kind in RAM_KINDS for shape in ((5, 64), (37, 256))),
    *(lambda shape=shape: Ram(*shape, "ecp5") for shape in ((37, 512), (20, 1024), (9, 2048), (2, 16384))),
    *(lambda shape=shape: Ram(*shape, "gowin") for shape in ((37, 512), (20, 1024), (11, 2048))),
    PcieLink, UltrascalePlus, Series7,
)


def said(fragment: Fragment) -> str:
    """All of a fragment, as text; positions in the sources left out."""
    text = [type(fragment).__name__]
    for domain, statements in sorted(fragment.statements.items()):
        text.append(f"{domain} {statements!r}")
        text += sorted({f"{s.name} {s.shape()} {s.init} {s.reset_less}" for s in statements._lhs_signals()})
    for name in ("parameters", "named_ports", "_init", "_read_ports", "_write_ports"):
        value = getattr(fragment, name, None)
        if name.endswith("ports") and isinstance(value, list):
            value = [sorted((k, repr(v)) for k, v in vars(port).items() if k != "src_loc") for port in value]
        elif isinstance(value, dict):
            value = sorted((k, repr(v)) for k, v in value.items())
        text.append(f"{name} {value!r}")
    return "\n".join([*text, *(said(part) for part, *_ in fragment.subfragments)])


if __name__ == "__main__":
    gc.disable()
    warnings.simplefilter("error")
    digest = hashlib.sha256()
    for design in DESIGNS:
        digest.update(said(Fragment.get(design(), None)).encode())
    print(digest.hexdigest())
