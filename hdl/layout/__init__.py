"""Everything that crosses the wire: registers, event frames, blocks, records, format versions.

Plain Python, no Amaranth and no NumPy. The gateware (:mod:`hypermon.hdl`) builds its structures
from these tables, the host (:mod:`hypermon.host`) its decoders, and ``docs/`` its tables. A width or
an offset is defined here and nowhere else.

Sources: "the paper" is Malony & Reed, *A Hardware-Based Performance Monitor for the Intel iPSC/2
Hypercube* (1990); section numbers are the paper's.

Flow: fronts, geometry, record, register_map, blocks, compact, loss_census, mark_record, uart, usb, pcie, regeneration
"""

# ruff: noqa: F403 -- every module states its names in __all__
from . import (
    blocks,
    compact,
    fronts,
    geometry,
    loss_census,
    mark_record,
    pcie,
    record,
    regeneration,
    register_map,
    uart,
    usb,
)
from .blocks import *
from .compact import *
from .fronts import *
from .geometry import *
from .loss_census import *
from .mark_record import *
from .pcie import *
from .record import *
from .regeneration import *
from .register_map import *
from .uart import *
from .usb import *

__all__: list[str] = []
__all__ += geometry.__all__
__all__ += record.__all__
__all__ += register_map.__all__
__all__ += blocks.__all__
__all__ += compact.__all__
__all__ += loss_census.__all__
__all__ += mark_record.__all__
__all__ += uart.__all__
__all__ += usb.__all__
__all__ += pcie.__all__
__all__ += regeneration.__all__
__all__ += fronts.__all__
