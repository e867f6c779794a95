"""The engine of diskless topics as the components of a broker see it: open (`DisklessTier`), or not open (yet)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeGuard

from strandline.controlplane import DisklessLog
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, StrandlineError
from strandline.hybrid.diskless.status import DisklessTierStatus
from strandline.model import BrokerId, Offset, TopicIdPartition, TopicPartition

if TYPE_CHECKING:  # a broker without diskless topics does not load it
    from strandline.hybrid.diskless.tier import DisklessTier


class DisklessEngine(Protocol):
    """What does not depend on a partition. Once open it stays so: its partitions are closed when the broker stops."""

    is_open: ClassVar[bool]
    """Whether it is open: `is_open_engine` says so to type checkers, too."""

    @property
    def url(self) -> str:
        """Where objects are; empty while it is not open."""

    @property
    def is_writing(self) -> bool:
        """True while producers wait for batches to be committed."""

    def hurry(self) -> None:
        """The broker stops: batches linger no more."""

    def learn(self, log: DisklessLog) -> None:
        """The control plane was asked for a log."""

    def forget(self, partition: TopicIdPartition) -> None:
        """What is known of a partition, and what memory has of it, does not hold any more."""

    def log_start_moved(self, partition: TopicIdPartition, offset: Offset) -> None:
        """Records before this offset were deleted."""

    def status(self) -> DisklessTierStatus | None:
        """Its components now; None while it is not open."""

    # While it is not open: why, for clients and for operators

    def why_unserved(self, partition: TopicPartition, *, is_led: bool) -> StrandlineError | None:
        """The error for a client that asks for a partition, which this broker leads or not; None if it is open."""

    def why_closed(self) -> StrandlineError | None:
        """The error for other clients; None if it is open."""

    def why_not_writable(self) -> str:
        """A sentence that says why nothing can be written; empty if it is open."""


class DisklessNotOpen:
    """`DisklessEngine` of a broker without diskless topics, and of any broker until the object store has answered."""

    is_open: ClassVar[bool] = False
    url: ClassVar[str] = ""
    is_writing: ClassVar[bool] = False

    def __init__(self, broker: BrokerId, trouble: Callable[[], str]) -> None:
        """`trouble` says what keeps it from being opened, as the end of a sentence."""
        self._broker, self._trouble = broker, trouble

    def hurry(self) -> None:
        """There are no batches."""

    def learn(self, log: DisklessLog) -> None:
        """The control plane is asked again when it is open."""

    def forget(self, partition: TopicIdPartition) -> None:
        """Nothing is known."""

    def log_start_moved(self, partition: TopicIdPartition, offset: Offset) -> None:
        """Nothing is known."""

    def status(self) -> None:
        return None

    def why_unserved(self, partition: TopicPartition, *, is_led: bool) -> StrandlineError:
        # Where a partition became diskless is not known either: a broker that does not lead it sends clients away.
        error = KafkaStorageError if is_led else NotLeaderOrFollower
        return error(f"{partition} is not served yet: {self._trouble()}")

    def why_closed(self) -> StrandlineError:
        return KafkaStorageError(f"Diskless topics: {self._trouble()}")

    def why_not_writable(self) -> str:
        return f"Diskless topics are not open on broker {self._broker}: {self._trouble()}."


def is_open_engine(engine: DisklessEngine) -> TypeGuard[DisklessTier]:
    """Whether the engine is open: for partitions, which there are only then."""
    return engine.is_open
