"""Members of share groups: Kafka's Java client in processes of their own, and what they say about each record."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import java_program
from bench.java_program import JavaProgram

from interop.kafka_tools import QUICK_JVM, ToolFailed
from interop.running_clients import RunningClient

SOURCE = Path(__file__).resolve().parent / "java" / "ShareMember.java"
SECONDS = 90.0
POLL_SECONDS = 0.1

Place = tuple[int, int]
"""Partition and offset."""


class ShareEvent(NamedTuple):
    """A line that a member printed; the program says what they are."""

    name: str
    place: Place
    rest: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> ShareEvent:
        name, partition, offset, *rest = line.split("\t")
        return cls(name, (int(partition), int(offset)), tuple(rest))


DEFINITE_REFUSALS = ("InvalidRecordStateException", "IllegalStateException")
"""Others come with connections that break, and leave it open what the broker has done."""
EVENTS = ("got\t", "says\t", "stored\t", "refused\t")


class ShareMember(RunningClient):
    """A running member."""

    @property
    def events(self) -> list[ShareEvent]:
        """What has happened so far."""
        return [ShareEvent.parse(line) for line in self.text.splitlines() if line.startswith(EVENTS)]

    def named(self, name: str, kind: str = "") -> list[Place]:
        """The records of all events of this name; `kind` is the first word behind the record."""
        return [one.place for one in self.events if one.name == name and kind in ("", one.rest[0])]

    def deliveries(self) -> list[tuple[str, int]]:
        """The value of each record that it got, and how often that was delivered."""
        return [(one.rest[1], int(one.rest[0])) for one in self.events if one.name == "got"]

    def in_doubt(self) -> list[Place]:
        """What it wanted to accept without learning whether that was stored."""
        wanted = {} if self.is_running else dict.fromkeys(self.named("says", "ACCEPT"))
        for event in self.events:
            if event.name == "refused":
                wanted[event.place] = None
            if event.name == "refused" and event.rest[-1] in DEFINITE_REFUSALS:
                wanted.pop(event.place)
        return [*wanted]

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Raises ToolFailed if it ends by itself, or if the condition is not met in time."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            if not self.is_running:
                raise ToolFailed(f"{self.name} ended by itself; see {self.output}")
            if time.monotonic() > deadline:
                raise ToolFailed(f"{self.name} did not come to {what} in {SECONDS:g} s; see {self.output}")
            time.sleep(POLL_SECONDS)

    def wait_stored(self, count: int) -> None:
        """Until the broker has confirmed so many answers."""
        self.wait_until(lambda: len(self.named("stored")) >= count, f"{count} confirmed answers")

    def wait_got(self, count: int) -> None:
        """Until so many records were delivered."""
        self.wait_until(lambda: len(self.named("got")) >= count, f"{count} records")

    def freeze(self) -> None:
        """The process does nothing more, and its connections stay."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)


class ShareMembers:
    """Starts members at one broker. A block: leaving it ends all that still run."""

    def __init__(self, program: JavaProgram, bootstrap: str, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._program, self._bootstrap, self._directory = program, bootstrap, directory
        self._started: list[ShareMember] = []

    @classmethod
    def build(cls, bootstrap: str, directory: Path) -> ShareMembers:
        return cls(java_program.build(SOURCE), bootstrap, directory)

    def at(self, bootstrap: str) -> ShareMembers:
        """Members of another broker."""
        return ShareMembers(self._program, bootstrap, self._directory)

    def start(self, group: str, topic: str, behaviour: str, *settings: str) -> ShareMember:
        command = self._program.command(self._bootstrap, group, topic, behaviour, *settings, jvm=QUICK_JVM)
        name = f"{group}-{behaviour}-{len(self._started)}"
        member = ShareMember(name, command, self._directory / f"{name}.out")
        self._started.append(member)
        return member

    def __enter__(self) -> ShareMembers:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._started:
            member.close()


def wait_stored_together(members: Sequence[ShareMember], count: int) -> None:
    """Until so many answers of these members were confirmed. The last one of them has to be alive."""
    members[-1].wait_until(
        lambda: sum(len(member.named("stored")) for member in members) >= count, f"{count} confirmed answers of all"
    )


def unanswered(expected: Iterable[Place], members: Sequence[ShareMember]) -> set[Place]:
    """The records that nobody has accepted.

    An answer that was on its way when its member or the broker was killed may have been stored without a word.
    """
    left = {*expected}
    for member in members:
        left.difference_update(member.named("stored", "ACCEPT"))
        left.difference_update(member.in_doubt())
    return left


def accepted_once(expected: Sequence[Place], members: Sequence[ShareMember]) -> str:
    """What is wrong with the answers of these members, if not each record was accepted exactly once."""
    stored = Counter(place for member in members for place in member.named("stored", "ACCEPT"))
    found = {
        "accepted twice": [place for place, count in stored.items() if count > 1],
        "never accepted": unanswered(expected, members),
        "never written": stored.keys() - {*expected},
    }
    return "; ".join(f"{len(some)} records were {what}: {sorted(some)[:10]}" for what, some in found.items() if some)
