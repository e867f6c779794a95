"""Waits for the end of a switch and shows its progress: a bar on a terminal, else a line for each change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final
from uuid import UUID

import typer
from rich.progress import BarColumn, Progress, TextColumn

from strandline.admin.commands.migration_client import KnownStatus, MigrationClient
from strandline.admin.commands.migration_holders import abort_holders
from strandline.admin.commands.output import console, print_json_line, print_line
from strandline.admin.migration_text import problems, summary
from strandline.client import Cluster, CommandFailed, sentences
from strandline.controlplane import MigrationState
from strandline.hybrid.switching.status import MigrationPhase, TopicMigrationStatus

_PAUSE_S: Final = 0.5
_FAILURES_IN_A_ROW: Final = 60
_INTERRUPTED: Final = 130
_OVER: Final = frozenset({MigrationState.HYBRID, MigrationState.DISKLESS_ONLY})
_Show = Callable[[TopicMigrationStatus], None]


def wait_switched(bootstrap: str, topic: str, topic_id: UUID, *, as_json: bool, aborts: bool = False) -> KnownStatus:
    """The status at the end of the switch. Raises CommandFailed if it was aborted, or the topic deleted.

    `aborts`: transactions that hold up the switch are aborted. Ctrl-C ends the waiting only. Brokers that do not answer
    are asked again, for half a minute at least.
    """
    try:
        with showing(as_json=as_json) as show:
            return _watch(bootstrap, topic, topic_id, show, aborts=aborts)
    except KeyboardInterrupt:
        look, stop = f"strandline migration status {topic}", f"strandline migration abort {topic}"
        typer.echo(f"The switch of {topic} goes on in the brokers. Look: {look}; take it back: {stop}", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def _watch(bootstrap: str, topic: str, topic_id: UUID, show: _Show, *, aborts: bool) -> KnownStatus:
    failures = 0
    while True:
        try:
            with sentences(), Cluster(bootstrap) as cluster:
                client = MigrationClient(cluster)
                while True:
                    known = _look(cluster, client, topic, topic_id)
                    failures = 0
                    show(known.status)
                    if known.status.state in _OVER:
                        return known
                    for aborted in abort_holders(cluster, known.status) if aborts else ():
                        typer.echo(f"The transaction of {aborted} was aborted, and its producer fenced.", err=True)
                    Event().wait(_PAUSE_S)
        except SwitchEnded:
            raise
        except CommandFailed as failure:
            failures += 1
            if failures == _FAILURES_IN_A_ROW:
                raise CommandFailed(f"The switch of {topic} may go on, but cannot be watched: {failure}") from failure
            Event().wait(_PAUSE_S)


class SwitchEnded(CommandFailed):
    """The topic will not become diskless by this switch."""


def _look(cluster: Cluster, client: MigrationClient, topic: str, topic_id: UUID) -> KnownStatus:
    found = cluster.metadata([topic]).topics[0]
    if found.topic_id != topic_id:
        raise SwitchEnded(f"Topic {topic} was deleted while it was being switched to diskless.")
    known = client.status(topic)
    is_asked = known.status.position is not None or any(row.b0 >= 0 for row in known.status.partitions)
    if known.status.state not in _OVER and not is_asked and not client.is_flagged(topic):
        raise SwitchEnded(f"The switch of {topic} to diskless was aborted: the topic goes on as it was.")
    return known


@contextmanager
def showing(*, as_json: bool) -> Iterator[_Show]:
    """Show each status that is passed: how far the topic is, and each problem of a partition once."""
    if as_json:
        yield _on_change(_json_line)
        return
    screen, new_problems = console(), _NewProblems()
    if not screen.is_terminal:
        yield _on_change(lambda status: print_line("\n".join((_line(status), *new_problems.of(status)))))
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=screen) as bars:
        task = bars.add_task("", total=100.0, note="")

        def draw(status: TopicMigrationStatus) -> None:
            for sentence in new_problems.of(status):
                bars.console.print(sentence, markup=False, highlight=False)
            bars.update(task, description=status.topic, completed=status.progress, note=summary(status))

        yield draw


def _line(status: TopicMigrationStatus) -> str:
    return f"{status.topic}: {summary(status)}"


class _NewProblems:
    """The sentences about problems that were not shown yet. How long a problem lasts does not make it a new one."""

    def __init__(self) -> None:
        self._shown: set[tuple[int, MigrationPhase | None]] = set()

    def of(self, status: TopicMigrationStatus) -> list[str]:
        phases = {row.partition: row.phase for row in status.partitions}
        now = {(partition, phases[partition]): problem for partition, problem in problems(status).items()}
        new = [
            f"{partition}: {problem}"
            for (partition, phase), problem in now.items()
            if (partition, phase) not in self._shown
        ]
        self._shown = set(now)
        return new


def _on_change(show: _Show) -> _Show:
    """Show only what reads differently from the line before."""
    last = [""]

    def shown(status: TopicMigrationStatus) -> None:
        if summary(status) != last[0]:
            last[0] = summary(status)
            show(status)

    return shown


def _json_line(status: TopicMigrationStatus) -> None:
    print_json_line(
        {
            "topic": status.topic,
            "state": status.state,
            "progress": round(status.progress, 1),
            "partition_count": len(status.partitions),
            "diskless_partitions": sum(row.b0 >= 0 for row in status.partitions),
            "uncopied_bytes": sum(row.uncopied_bytes for row in status.partitions),
            "problems": {str(partition): problem for partition, problem in problems(status).items()},
        }
    )
