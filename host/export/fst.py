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
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.sinks import sink
from hypermon.host.export.vcd import dump, say_limits
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["FST", "packed"]

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


def _write(run: Run, out: str, selection: Selection) -> None:
    if out == "-":
        raise HypermonError("-: an FST is a file; give its name")
    with sink(out) as file, packed(Path(file.name)) as dumped:
        limits = dump(run, dumped, selection)
    say_limits(run, *limits)


FST = Format("fst", _write, Tables.FRAMED)
