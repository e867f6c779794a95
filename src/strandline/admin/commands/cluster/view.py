"""A cluster at one moment, as one value: made of what each broker answers, and of the processes that are running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strandline.admin.commands.cluster.plan import BrokerPlan

UP: Final = "up"
STARTING: Final = "starting"
FENCED: Final = "fenced"
SILENT: Final = "no answer"
STOPPING: Final = "stopping"
ENDED: Final = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """One partition, as the metadata of a broker has it."""

    name: str
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAnswer:
    """What a broker says about itself and about the others."""

    is_ready: bool
    is_stopping: bool = False
    uptime_s: float = 0.0
    controller: tuple[int, int] = (-1, -1)
    """The epoch of the controller and its id, so that the larger one is right."""
    fenced: frozenset[int] = frozenset()
    bytes_in: int = 0
    """From clients, since its start."""
    bytes_out: int = 0
    messages_in: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswers:
    """What the brokers answered at one moment."""

    brokers: Mapping[int, BrokerAnswer] = field(default_factory=dict)
    """Of those that answered."""
    partitions: Sequence[PartitionState] | None = None
    """None if no broker could be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLine:
    """What is shown of one broker."""

    plan: BrokerPlan
    pid: int | None
    """None while we run no process of it."""
    state: str
    is_controller: bool = False
    leaders: int = 0
    replicas: int = 0
    in_sync: int = 0
    """Of how many partitions it is in the in-sync set."""
    messages_in: float = 0.0
    """In a second, as the two that follow."""
    bytes_in: float = 0.0
    bytes_out: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What is shown of the cluster."""

    brokers: tuple[BrokerLine, ...]
    controller: int
    """-1 if no broker knows one."""
    is_metadata_known: bool
    """False if no broker could be asked: then the numbers of partitions are 0."""
    partitions: int = 0
    under_replicated: int = 0
    leaderless: tuple[str, ...] = ()

    @property
    def up(self) -> int:
        """How many brokers serve clients."""
        return sum(line.state == UP for line in self.brokers)

    @property
    def messages_in(self) -> float:
        """Of all brokers, in a second."""
        return sum(line.messages_in for line in self.brokers)

    @property
    def bytes_in(self) -> float:
        """Of all brokers, in a second."""
        return sum(line.bytes_in for line in self.brokers)

    @property
    def bytes_out(self) -> float:
        """Of all brokers, in a second."""
        return sum(line.bytes_out for line in self.brokers)


def make_view(
    plans: Sequence[BrokerPlan],
    pids: Mapping[int, int],
    now: ClusterAnswers,
    before: ClusterAnswers,
) -> ClusterView:
    """The view of the cluster now. `pids` has the brokers whose process we run.

    `before` has the last answer that each broker gave earlier; of one that was started since then it has none.
    """
    controller, fenced = _controller(now), _fenced(now)
    if controller not in now.brokers and controller not in pids:
        controller = -1  # it has ended, and the others have not got another one yet
    partitions = now.partitions or ()
    leaders = Counter(partition.leader for partition in partitions)
    replicas = Counter(node for partition in partitions for node in partition.replicas)
    in_sync = Counter(node for partition in partitions for node in partition.in_sync)
    lines = []
    for plan in plans:
        node = plan.node_id
        answer, earlier = now.brokers.get(node), before.brokers.get(node)
        rates = _rates(answer, earlier)
        lines.append(
            BrokerLine(
                plan=plan,
                pid=pids.get(node),
                state=_state(answer, earlier, is_running=node in pids, is_fenced=node in fenced),
                is_controller=node == controller,
                leaders=leaders[node],
                replicas=replicas[node],
                in_sync=in_sync[node],
                messages_in=rates[0],
                bytes_in=rates[1],
                bytes_out=rates[2],
            )
        )
    return ClusterView(
        brokers=tuple(lines),
        controller=controller,
        is_metadata_known=now.partitions is not None,
        partitions=len(partitions),
        under_replicated=sum(len(partition.in_sync) < len(partition.replicas) for partition in partitions),
        leaderless=tuple(sorted(partition.name for partition in partitions if partition.leader < 0)),
    )


def _controller(now: ClusterAnswers) -> int:
    """The one of the newest epoch that a broker knows."""
    return max((answer.controller for answer in now.brokers.values()), default=(-1, -1))[1]


def _fenced(now: ClusterAnswers) -> frozenset[int]:
    """As a broker that knows the newest controller sees it, if possible the controller itself."""
    newest = max(
        now.brokers.items(), key=lambda pair: (pair[1].controller, pair[0] == pair[1].controller[1]), default=None
    )
    return frozenset() if newest is None else newest[1].fenced


def _state(answer: BrokerAnswer | None, earlier: BrokerAnswer | None, *, is_running: bool, is_fenced: bool) -> str:
    if answer is None:
        if not is_running:
            return ENDED
        return STARTING if earlier is None else SILENT
    if answer.is_stopping:
        return STOPPING
    if is_fenced:
        return FENCED
    return UP if answer.is_ready else STARTING


def _rates(answer: BrokerAnswer | None, earlier: BrokerAnswer | None) -> tuple[float, float, float]:
    if answer is None or earlier is None or answer.uptime_s <= earlier.uptime_s:
        return 0.0, 0.0, 0.0
    seconds = answer.uptime_s - earlier.uptime_s
    return (
        (answer.messages_in - earlier.messages_in) / seconds,
        (answer.bytes_in - earlier.bytes_in) / seconds,
        (answer.bytes_out - earlier.bytes_out) / seconds,
    )
