"""Converts a value change dump to FST, GTKWave's own format: compact, and opened at once whatever its length.

GTKWave's ``vcd2fst`` packs the dump while it is written, so no intermediate file is stored.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from hypermon.host.errors import HypermonError

__all__ = ["packed"]

_PROGRAM = "vcd2fst"


@contextmanager
def packed(path: Path) -> Iterator[BinaryIO]:
    """Receives a dump; at the end it is at ``path`` as FST.

    Raises
    ------
    HypermonError
        if GTKWave is not installed, or rejects the dump.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        raise HypermonError(f"FST needs GTKWave's {_PROGRAM}, which is not installed: apt-get install gtkwave "
                            "(or export --to vcd)")
    with tempfile.TemporaryFile() as said:
        try:
            with subprocess.Popen([program, "-", str(path)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=said) as process:
                yield cast(BinaryIO, process.stdin)
        except BrokenPipeError:     # it has ended, and its status gives the reason
            pass
        said.seek(0)
        if process.returncode != 0:
            words = said.read(200).decode(errors="replace").split("\n")[0]
            raise HypermonError(f"{path.name}: {_PROGRAM} ended with status {process.returncode} {words}".rstrip())
