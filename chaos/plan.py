"""Which faults happen, by seed: values that say what is done to which broker, for how long."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

PROCESSES: Final = (
    "SIGKILL",
    "SIGKILL leader",
    "SIGKILL controller",
    "SIGKILL together",
    "SIGSTOP",
    "SIGSTOP leader",
    "SIGSTOP controller",
    "SIGSTOP together",
    "restart",
    "rolling restart",
)
DATABASE: Final = (
    "database restart",
    "database SIGKILL",
    "database SIGSTOP",
    "database read-only",
    "database cut from one",
    "database hangs for one",
)
NETWORK: Final = (
    "link cut",
    "link cut one way",
    "leader cut one way",
    "broker cut from brokers",
    "broker cut from all",
)
DISKS: Final = ("disk full", "disk hangs", "disk slow")
KINDS: Final = (*PROCESSES, *DATABASE, *NETWORK, *DISKS)

_ALL: Final = ("SIGKILL together", "SIGSTOP together", "rolling restart")
_LINKS: Final = ("link cut", "link cut one way")


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault to come: what, to which broker, for how long, and how long everything is left alone afterwards."""

    kind: str
    node: int
    """The broker, if the kind does not say which."""
    other: int
    """For a link: where it leads to."""
    place: int
    """For a leader: the number of its partition, among all of the run."""
    seconds: float
    calm: float

    def target(self, node: int) -> str:
        """In words. `node` is the broker that it has hit."""
        if self.kind in _ALL:
            return "all brokers"
        if self.kind in _LINKS:
            return f"brokers {self.node} and {self.other}"
        if self.kind.startswith("database"):
            return f"PostgreSQL and broker {node}" if self.kind.endswith("one") else "PostgreSQL"
        return f"broker {node}"


def kinds_for(brokers: int, *, is_isolated: bool) -> tuple[str, ...]:
    """What can be done to so many brokers, with namespaces of the run's own or without."""
    if not is_isolated:
        return (*PROCESSES, *DATABASE)
    return KINDS if brokers > 1 else (*PROCESSES, *DATABASE, *DISKS)


def rounds(seed: int, nodes: Sequence[int], kinds: Sequence[str]) -> Iterator[list[Planned]]:
    """Faults without end: each kind once in every round, in an order by chance. Half of them outlast a session."""
    dice = random.Random(f"faults {seed}")
    while True:
        yield [_planned(dice, kind, nodes) for kind in dice.sample(kinds, len(kinds))]


def _planned(dice: random.Random, kind: str, nodes: Sequence[int]) -> Planned:
    seconds = dice.choice((dice.uniform(0.2, 2.0), dice.uniform(5.0, 9.0)))
    node, other = dice.sample(nodes, 2) if len(nodes) > 1 else (nodes[0], nodes[0])
    return Planned(
        kind=kind,
        node=node,
        other=other,
        place=dice.randrange(1 << 16),
        seconds=round(seconds, 2),
        calm=round(dice.uniform(1.0, 8.0), 2),
    )
