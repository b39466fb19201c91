"""The live view in a terminal: the same session as the page's, drawn with characters."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from hypermon.host.analysis.stats import duration_text, quantity
from hypermon.host.errors import HypermonError
from hypermon.host.live.history import Stretch
from hypermon.host.live.session import Session
from hypermon.host.record.interrupt import handled
from hypermon.host.text.printable import printable
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

__all__ = ["WatchApp"]

_TICK_S = 0.25
#: Spans of time that can be shown, in seconds; the last is all.
_SPANS = (1, 10, 60, 600, 10**7)
_SPAN_NAMES = ("1 s", "10 s", "1 min", "10 min", "all")
_SHADES = " ░▒▓█"
_CAUSES = {"frame_fifo": "frame FIFO full", "node_fifo": "node FIFO full", "vector_fifo": "vector FIFO full",
            "regeneration_gate": "regeneration board full", "regeneration_line": "lost on a regeneration line"}
_BAD, _QUIET = Style(color="red", bold=True), Style(dim=True)
#: Width of the columns left and right of a node's strip.
_BESIDE = 46


class WatchApp(App[None]):
    """Draws a session four times a second.

    Parameters
    ----------
    session : begins to record at once, if it has a board.
    options : of ``hypermon record``.
    """

    TITLE = "hypermon watch"
    CSS = """
    Screen { layout: vertical; }
    #head { height: auto; padding: 0 1; }
    #figures { height: auto; padding: 0 1; border: round $primary; }
    #scroll { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "record", "Start"), Binding("x", "stop", "Stop"),
        Binding("plus,equals_sign", "zoom(-1)", "Shorter", key_display="+"),
        Binding("minus", "zoom(1)", "Longer", key_display="-"),
        Binding("h", "hold", "Hold"), Binding("t", "theme_other", "Theme"), Binding("q", "quit", "Quit"),
        # A terminal that programs draw on sends a key. Otherwise Textual names the key to press instead.
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, session: Session, options: Sequence[str] = ()):
        super().__init__()
        self._session, self._options = session, list(options)
        self._span, self._held, self._said, self._trouble = 1, False, "", ""
        self._alone = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="figures")
        with VerticalScroll(id="scroll"):
            yield Static(id="nodes")
            yield Static(id="losses")
        yield Footer()

    async def on_mount(self) -> None:
        for number in handled():
            # Windows' event loops take no signal handlers.
            with contextlib.suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        if self._session.board is not None:
            await self.action_record()
        await self._tick()
        self.set_interval(_TICK_S, self._tick)

    async def _tick(self) -> None:
        """Shows changes. A failure is shown, and the next tick tries again."""
        try:
            await self._show()
            self._trouble = ""
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._trouble = printable(f"the view failed and continues: {type(error).__name__}: {error}")
        if self.query("#head"):
            self.query_one("#head", Static).update(Text(self._trouble, _BAD))

    async def _show(self) -> None:
        async with self._alone:
            await asyncio.to_thread(self._session.step)
            state = self._session.snapshot()
            stretch = self._session.stretch(_SPANS[self._span] * 10**12)
        # The user may have left the view meanwhile.
        if not self._held and self.query("#head"):
            self._draw(state, stretch)

    def _draw(self, state: dict[str, Any], stretch: Stretch | None) -> None:
        self.query_one("#head", Static).update(_head(state, self._said, _SPAN_NAMES[self._span], self._held))
        self.query_one("#figures", Static).update(_figures(state, stretch))
        width = max(self.size.width - _BESIDE, 10)
        self.query_one("#nodes", Static).update(_nodes(state, stretch, width))
        self.query_one("#losses", Static).update(_losses(state))

    # ---------------------------------------------------------------------------------------- commands

    async def action_record(self) -> None:
        await self._try(lambda: self._session.start(self._options))

    async def action_stop(self) -> None:
        await self._try(self._session.stop)

    async def _try(self, work: Any) -> None:
        async with self._alone:
            try:
                await asyncio.to_thread(work)
                self._said = ""
            except HypermonError as error:
                self._said = str(error)
            except Exception as error:
                self._said = f"that failed: {type(error).__name__}: {error}"

    def action_zoom(self, step: int) -> None:
        self._span = max(0, min(self._span + step, len(_SPANS) - 1))

    def action_hold(self) -> None:
        self._held = not self._held
        try:
            self.query_one("#head", Static).update(_head(self._session.snapshot(), self._said, _SPAN_NAMES[self._span],
                                                         self._held))
        except Exception as error:
            self._fail(error)

    def action_theme_other(self) -> None:
        self.theme = "textual-light" if self.theme != "textual-light" else "textual-dark"


# ------------------------------------------------------------------------------------------- drawing

def _head(state: dict[str, Any], said: str, span: str, held: bool) -> Text:
    text = Text.assemble(("HYPERMON ", "bold"), printable(state["name"]), "  ",
                         (state["state"], "bold green" if state["state"] != "failed" else _BAD))
    if state.get("trigger"):
        text.append(f", {state['trigger']}")
    text.append(f"  {duration_text(state.get('time_ps', 0))}  shown: {span}{', held' if held else ''}")
    if state["run"] is not None:
        text.append(f"\n{printable(state['run'])}", _QUIET)
    for complaint in filter(None, (state["failure"], said)):
        text.append(f"\n{printable(complaint)}", _BAD)
    return text


def _figures(state: dict[str, Any], stretch: Stretch | None) -> Table:
    link = state["lost_on_link"] or 0
    lost = sum(state.get("lost", [])) + link
    parts = [f"{_CAUSES[name]}: {n:,}" for name, n in state.get("causes", {}).items() if n]
    others = {"on the link": link, "blocks missing": state.get("missing_blocks"), "bytes torn": state.get("torn_bytes"),
              "invalid blocks": state.get("faulty_blocks")}
    parts += [f"{what}: {n:,}" for what, n in others.items() if n]
    rate = sum(_rates(stretch)) if stretch is not None else 0.0
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_row(
        Text.assemble(("items ", _QUIET), f"{sum(state.get('items', [])):,}  {quantity(rate, '/s')}"),
        Text.assemble(("lost ", _QUIET), (f"{lost:,}", _BAD if lost else ""), ("  " + ", ".join(parts), _QUIET)),
        Text.assemble(("stream ", _QUIET), quantity(state["bytes_per_s"], "B/s")),
        *(Text.assemble((f"{name} FIFO ", _QUIET), _level(state.get(f"{name}_level", 0),
                                                          state["identity"].get(f"{name}_depth")))
          for name in ("frame", "vector")))
    return table


def _level(level: int, depth: int | None) -> Text:
    if not depth:
        return Text("–")  # noqa: RUF001
    share = level / depth
    return Text(f"{share:4.0%} {'█' * round(8 * share):8}", style="red" if share > 0.85 else "")


def _rates(stretch: Stretch) -> list[float]:
    """Events per second of every node, over the last second that is shown."""
    bins = min(max(round(10**12 / stretch.bin_ps), 1), len(stretch.items))
    begin_ps = stretch.begin_ps + stretch.bin_ps * (len(stretch.items) - bins)
    # The last bin is counted up to end_ps only.
    rates: list[float] = (stretch.items[-bins:].sum(axis=0) * (1e12 / max(stretch.end_ps - begin_ps, 1))).tolist()
    return rates


def _nodes(state: dict[str, Any], stretch: Stretch | None, width: int) -> Table | Text:
    if stretch is None or "items" not in state:
        return Text("no data yet", style=_QUIET)
    table = Table(box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    for title in ("node", "items/s", "items", "lost"):
        table.add_column(title, justify="right", no_wrap=True)
    end_ps = stretch.begin_ps + stretch.bin_ps * len(stretch.items)
    table.add_column(f"{stretch.begin_ps / 1e12:.2f} s to {end_ps / 1e12:.2f} s; red: lost", no_wrap=True)
    items, lost = _columns(stretch.items, width), _columns(stretch.lost, width)
    most = max(items.max(initial=0.0), 1.0)
    for node, rate in enumerate(_rates(stretch)):
        gone = state["lost"][node]
        table.add_row(str(node), quantity(rate, ""), f"{state['items'][node]:,}",
                      Text(f"{gone:,}", style=_BAD if gone else ""), _strip(items[:, node], lost[:, node], most))
    return table


def _columns(counts: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """Counts summed into at most the given number of columns."""
    edges = np.linspace(0, len(counts), min(width, len(counts)) + 1).astype(int)[:-1]
    return np.add.reduceat(counts, edges, axis=0)


def _strip(items: np.ndarray[Any, Any], lost: np.ndarray[Any, Any], most: float) -> Text:
    shades = np.ceil(np.log1p(items) / np.log1p(most) * (len(_SHADES) - 1)).astype(int)
    text = Text()
    for shade, gone in zip(shades.tolist(), lost.tolist(), strict=True):
        text.append("█" if gone else _SHADES[shade], _BAD if gone else None)
    return text


def _losses(state: dict[str, Any]) -> Table | Text:
    if not state["losses"]:
        return Text("")
    table = Table(title="losses, newest first", title_justify="left", box=None, header_style="bold",
                  padding=(0, 1), pad_edge=False)
    for title in ("node", "lost", "from", "for"):
        table.add_column(title, justify="right")
    for node, lost, from_ps, to_ps in reversed(state["losses"][-20:]):
        table.add_row(str(node), f"{lost:,}", f"{from_ps / 1e12:.6f} s", duration_text(to_ps - from_ps))
    return table
