"""A driver for labgrid: recordings of a board beside the target's other drivers (docs/check.md).

An environment file imports this module, and names the board::

    imports:
    - hypermon.sim.labgrid_driver
    targets:
      main:
        resources:
          HypermonBoard: {board: "usb:"}
        drivers:
          HypermonDriver: {folder: runs}

>>> with target.get_driver("HypermonDriver").recording() as run:
...     power.cycle()
>>> run.check("rules.toml")

Needs labgrid 25 or 26, which the project does not install.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import attr
from labgrid import step, target_factory
from labgrid.driver import Driver
from labgrid.resource import Resource

from .recording import Recording, Stimulus

__all__ = ["HypermonBoard", "HypermonDriver"]


@target_factory.reg_resource
@attr.s(eq=False)
class HypermonBoard(Resource):
    """An event capture board.

    Parameters
    ----------
    board : its URI, as for ``hypermon record``; ``sim:``, the default, is the virtual board, which plays stimuli.
    """

    board = attr.ib(default="sim:", validator=attr.validators.instance_of(str))


@target_factory.reg_driver
@attr.s(eq=False)
class HypermonDriver(Driver):
    """Records a :class:`HypermonBoard`.

    Parameters
    ----------
    folder : directory of the RUNs, relative to the environment file; created when needed. RUNs are named ``0001`` and
        so on, and are kept.
    """

    bindings = {"board": HypermonBoard}  # noqa: RUF012  (as labgrid declares it)
    folder = attr.ib(default="hypermon-runs", validator=attr.validators.instance_of(str))

    @Driver.check_active
    @step(args=["stimulus", "options"])
    def recording(self, stimulus: Stimulus | None = None, *, options: Sequence[str] = (),
                  dictionary: str | Path | None = None, framing: bool = False) -> Recording:
        """A recording, for a ``with`` block: it begins and ends with the block.

        Parameters
        ----------
        stimulus : what the virtual board plays at the end of the block; for ``sim:`` alone.
        options : of ``hypermon record``, or of ``hypermon sim`` for ``sim:``.
        dictionary : event dictionary for the RUN. ``framing``: events are framed from nibbles.

        Raises
        ------
        HypermonError
            by the block, if the board cannot be recorded.
        """
        return Recording(self.board.board, self._next_run(), stimulus, options, dictionary, framing)

    def _next_run(self) -> Path:
        folder = Path(self.folder)
        if self.target.env is not None:
            folder = Path(self.target.env.config.resolve_path(self.folder))
        folder.mkdir(parents=True, exist_ok=True)
        numbers = [int(name) for name in os.listdir(folder) if name.isdecimal()]
        return folder / f"{max(numbers, default=0) + 1:04}"
