"""The pictures of a RUN, whether it has ended or not."""

from collections.abc import Callable

from hypermon.host.run import Run
from hypermon.host.view.picture import Pictures

__all__ = ["opened"]


def opened(run: Run, decoded: Callable[[], Run]) -> Pictures:
    """The pictures of the data that a RUN has so far; they follow it while it is being recorded.

    Parameters
    ----------
    decoded : the RUN with its tables. It is not called for a RUN that grows.

    Raises
    ------
    HypermonError
        if the RUN cannot be read.
    """
    if run.info.end is None:
        from hypermon.host.view.growing import GrowingPictures, grows

        if grows(run):
            return GrowingPictures(run)
    return Pictures(decoded())
