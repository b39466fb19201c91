"""A run in other formats."""

from hypermon.host.errors import HypermonError
from hypermon.host.export.ctf import CTF, CTF2
from hypermon.host.export.events_csv import EVENTS
from hypermon.host.export.format import Format
from hypermon.host.export.frames import FRAMES
from hypermon.host.export.fst import FST
from hypermon.host.export.logs_csv import LOGS
from hypermon.host.export.nibbles_csv import CSV
from hypermon.host.export.otf2_archive import OTF2
from hypermon.host.export.perfetto import MANIFEST, PERFETTO
from hypermon.host.export.soundness import check_tables
from hypermon.host.export.srzip import SR
from hypermon.host.export.vcd import VCD
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["FORMATS", "export", "refuse_format"]

#: All formats by name.
FORMATS: dict[str, Format] = {form.name: form for form in (
    CSV, FRAMES, EVENTS, LOGS, VCD, FST, CTF, CTF2, OTF2, SR, PERFETTO, MANIFEST)}


def export(run: Run, form: str, out: str, selection: Selection | None = None) -> None:
    """Writes a run to a file, or a directory, as ``form``, one of :data:`FORMATS`; ``-`` is standard output.

    The output appears when it is whole. An existing file is replaced, a directory is not. Memory does not grow with the
    run. All tables are checked before the first byte is written.

    Parameters
    ----------
    selection : of nodes and times, if not all; ``columns`` has no meaning here.

    Raises
    ------
    InputError
        if the format cannot represent a run of this kind, or one of its tables is damaged or belongs to another run.
    HypermonError
        if the format is unknown, does not support a selection, or is not installed.
    """
    selection = selection or Selection()
    refuse_format(run, form, selection)
    check_tables(run, FORMATS[form].tables)
    FORMATS[form].write(run, out, selection)


def refuse_format(run: Run, form: str, selection: Selection | None = None) -> None:
    """Raises the errors of :func:`export` if the format cannot represent this run, before anything is decoded."""
    if form not in FORMATS:
        raise HypermonError(f"there is no format {form!r}; there are {', '.join(FORMATS)}")
    FORMATS[form].refuse(run, selection or Selection())
