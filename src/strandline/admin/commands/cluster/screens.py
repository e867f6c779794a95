"""How a cluster is shown: a table that is redrawn on a terminal, plain lines elsewhere, or JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from strandline.admin.commands.cluster.events import ClusterEvent, ClusterScreen
from strandline.admin.commands.cluster.view import ENDED, FENCED, SILENT, UP, BrokerLine, ClusterView
from strandline.admin.commands.output import console, print_json_line
from strandline.admin.text import count, size
from strandline.clock import Clock, SystemClock

_EVERY_S: Final = 10.0
_SHOWN: Final = 5
_SOME: Final = 20
_COLUMNS: Final = ("broker", "rack", "port", "HTTP", "process", "state", "leads", "in sync")
_RATE_COLUMNS: Final = ("records/s", "in/s", "out/s")
_WORDS: Final = ("broker", "rack", "state")
_WIDTH_OF_RATES: Final = 105
_STYLES: Final = {UP: "green", ENDED: "bold red", SILENT: "bold red", FENCED: "red"}


def screen_for(*, as_json: bool) -> ClusterScreen:
    """The one that fits standard output."""
    if as_json:
        return JsonScreen()
    shown = console()
    return TableScreen(shown) if shown.is_terminal else LineScreen(SystemClock(), _print_now)


class TableScreen:
    """A table that stays at the bottom of a terminal; events pass above it."""

    def __init__(self, shown: Console) -> None:
        self._live = Live(console=shown, auto_refresh=False, transient=True)
        self._console = shown

    def tell(self, event: ClusterEvent) -> None:
        style = "red" if event.is_trouble else "dim" if event.kind == "log" else ""
        self._console.print(Text(_line_of(event), style=style), soft_wrap=True)

    def show(self, view: ClusterView) -> None:
        if not self._live.is_started:
            self._live.start()
        self._live.update(table_of(view, width=self._console.width), refresh=True)

    def close(self) -> None:
        self._live.stop()


class LineScreen:
    """A line for each event, and one for the state of the cluster when that has changed, or now and then."""

    def __init__(self, clock: Clock, write: Callable[[str], None]) -> None:
        self._clock, self._write = clock, write
        self._shown_at = float("-inf")
        self._shown: ClusterView | None = None

    def tell(self, event: ClusterEvent) -> None:
        self._write(_line_of(event))

    def show(self, view: ClusterView) -> None:
        now, state = self._clock.monotonic(), _without_rates(view)
        if state != self._shown or now - self._shown_at >= _EVERY_S:
            self._shown, self._shown_at = state, now
            self._write(summary(view))

    def close(self) -> None:
        pass


class JsonScreen:
    """An object on a line for each event and each look."""

    def tell(self, event: ClusterEvent) -> None:
        broker = {} if event.node_id is None else {"broker": event.node_id}
        print_json_line({"event": event.kind, **broker, "text": event.text, **event.details})
        sys.stdout.flush()

    def show(self, view: ClusterView) -> None:
        print_json_line({"event": "summary", **_json(view)})
        sys.stdout.flush()

    def close(self) -> None:
        pass


def _print_now(text: str) -> None:
    print(text, flush=True)


def summary(view: ClusterView) -> str:
    """The cluster in a line."""
    states = ", ".join(f"{line.plan.node_id} {line.state}" for line in view.brokers if line.state != UP)
    brokers = f"{view.up} of {len(view.brokers)} brokers are up" + (f" ({states})" if states else "")
    controller = f"broker {view.controller} is the controller" if view.controller >= 0 else "no controller is known"
    return f"{brokers}, {controller}; {partitions_in_words(view)}; {_rates(view)}"


def partitions_in_words(view: ClusterView) -> str:
    """How the partitions are."""
    if not view.is_metadata_known:
        return "no broker says how the partitions are"
    leads = ", ".join(f"{line.plan.node_id} leads {line.leaders}" for line in view.brokers)
    names = ", ".join(view.leaderless[:_SHOWN])
    more = f" and {len(view.leaderless) - _SHOWN} more" if len(view.leaderless) > _SHOWN else ""
    without = f" ({names}{more})" if names else ""
    return (
        f"{view.partitions} partitions, {leads}; {view.under_replicated} under-replicated, "
        f"{len(view.leaderless)} without a leader{without}"
    )


def table_of(view: ClusterView, *, width: int) -> RenderableType:
    """A row for each broker, and the partitions below. In a narrow terminal, rates are those of all brokers only."""
    columns = (*_COLUMNS, *_RATE_COLUMNS) if width >= _WIDTH_OF_RATES else _COLUMNS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="left" if column in _WORDS else "right", no_wrap=True)
    for line in view.brokers:
        table.add_row(*_cells(line)[: len(columns)])
    style = "bold red" if view.leaderless else "yellow" if view.under_replicated else ""
    return Group(table, Text(partitions_in_words(view), style=style), Text(_rates(view)))


def _cells(line: BrokerLine) -> list[Text]:
    plan, state = line.plan, line.state
    return [
        Text(str(plan.node_id)),
        Text(plan.rack or "-"),
        Text(str(plan.port)),
        Text(str(plan.http_port)),
        Text("-" if line.pid is None else str(line.pid)),
        Text(f"{state}, controller" if line.is_controller else state, style=_STYLES.get(state, "yellow")),
        Text(str(line.leaders)),
        Text(f"{line.in_sync} of {line.replicas}", style="yellow" if line.in_sync < line.replicas else ""),
        Text(count(round(line.messages_in))),
        Text(size(round(line.bytes_in))),
        Text(size(round(line.bytes_out))),
    ]


def _line_of(event: ClusterEvent) -> str:
    return event.text if event.node_id is None else f"broker {event.node_id}: {event.text}"


def _rates(view: ClusterView) -> str:
    written, read = size(round(view.bytes_in)), size(round(view.bytes_out))
    return f"{count(round(view.messages_in))} records/s, {written}/s in, {read}/s out"


def _without_rates(view: ClusterView) -> ClusterView:
    lines = tuple(replace(line, messages_in=0.0, bytes_in=0.0, bytes_out=0.0) for line in view.brokers)
    return replace(view, brokers=lines)


def _json(view: ClusterView) -> dict[str, object]:
    return {
        "controller": view.controller,
        "up": view.up,
        "partitions": view.partitions if view.is_metadata_known else None,
        "under_replicated": view.under_replicated if view.is_metadata_known else None,
        "leaderless": len(view.leaderless) if view.is_metadata_known else None,
        "some_leaderless": view.leaderless[:_SOME],
        "brokers": [
            {
                "broker": line.plan.node_id,
                "rack": line.plan.rack,
                "pid": line.pid,
                "state": line.state,
                "is_controller": line.is_controller,
                "leaders": line.leaders,
                "replicas": line.replicas,
                "in_sync": line.in_sync,
                "messages_in_per_s": round(line.messages_in, 1),
                "bytes_in_per_s": round(line.bytes_in, 1),
                "bytes_out_per_s": round(line.bytes_out, 1),
            }
            for line in view.brokers
        ],
    }
