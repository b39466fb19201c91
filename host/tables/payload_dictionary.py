"""Assigns a number to each distinct payload of events, in C (``items.c``)."""

import ctypes

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.blocks.native import native

__all__ = ["numbered"]

#: Maximum number of different payloads, and bytes of each; with more, a dictionary would save little.
_MOST, _KEY = 1 << 16, 16
_SLOTS = 2 * _MOST

_DICTIONARY = native("hypermon_dictionary_1", *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)


def numbered(payloads: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same payloads, dictionary-encoded; None if that is not possible here, or has no use.

    That is so if some are null or longer than 16 bytes, if too many are different, and without the C library.
    """
    if _DICTIONARY is None or payloads.null_count:
        return None
    slots, keys, lengths = np.zeros(_SLOTS, np.uint32), np.empty((_MOST, _KEY), np.uint8), np.empty(_MOST, np.uint8)
    state = np.array([slots.ctypes.data, keys.ctypes.data, lengths.ctypes.data, _SLOTS - 1, _MOST, 0], np.uint64)
    made = []
    for chunk in payloads.chunks:
        numbers = np.empty(len(chunk), np.int32)
        _, offsets, data = chunk.buffers()
        if len(chunk) and _DICTIONARY(data.address if data is not None else None, offsets.address + 4 * chunk.offset,
                                      len(chunk), state.ctypes.data, numbers.ctypes.data) != 0:
            return None
        made.append(numbers)
    count = int(state[-1])
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths[:count], out=offsets[1:])
    data = keys[:count][np.arange(_KEY) < lengths[:count, np.newaxis]]
    dictionary = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(numbers), dictionary) for numbers in made],
                            pa.dictionary(pa.int32(), pa.binary()))
