"""What leaders ask of the rest of their broker: who the other brokers are, and another in-sync set for a partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from strandline.errors import StrandlineError
from strandline.metadata import EMPTY_IMAGE, Images, IsrChange, MetadataImage, PartitionImage
from strandline.model import BrokerId

NOT_REGISTERED: Final = -2


class IsrProposal(Protocol):
    """A change of an in-sync set that is on its way to the controller."""

    @property
    def change(self) -> IsrChange:
        """What the controller is asked for."""

    @property
    def is_expansion(self) -> bool:
        """True if a replica joins; else some leave."""

    @property
    def is_wanted(self) -> bool:
        """False if metadata has overtaken it: then it need not be sent (again)."""

    def answered(self, result: PartitionImage | StrandlineError) -> None:
        """The controller has decided."""


class IsrChanges(Protocol):
    """Takes changes of in-sync sets to the controller."""

    def submit(self, proposal: IsrProposal) -> bool:
        """Send it, soon. `answered` is called once if it is true that the controller got it, and it is still wanted.

        False if a change of this partition is on its way: then nothing has happened.
        """


class NoIsrChanges:
    """The `IsrChanges` of a broker without a controller to ask: in-sync sets stay as they are."""

    def submit(self, proposal: IsrProposal) -> bool:
        return False


class ReplicaBrokers:
    """The brokers that hold replicas, as the newest metadata shows them."""

    __slots__ = ("_images", "_own_epoch")

    def __init__(self, images: Images, own_epoch: Callable[[], int]) -> None:
        self._images, self._own_epoch = images, own_epoch

    @property
    def own_epoch(self) -> int:
        """The broker epoch of this broker."""
        return self._own_epoch()

    def epoch_of(self, broker: BrokerId) -> int:
        """The epoch of its registration; NOT_REGISTERED without one."""
        known = self._images.image.brokers.get(broker)
        return NOT_REGISTERED if known is None else known.epoch

    def is_fenced(self, broker: BrokerId) -> bool:
        """True if it is fenced, or not registered."""
        known = self._images.image.brokers.get(broker)
        return known is None or known.fenced

    def is_eligible(self, broker: BrokerId, epoch: int, topic_id: UUID, partition: int) -> bool:
        """True if this incarnation of a broker may be in sync: registered, not fenced, not shutting down.

        And its replica of the partition is not in a log directory that has failed.
        """
        image = self._images.image
        known = image.brokers.get(broker)
        if known is None or not known.is_active or known.epoch != epoch:
            return False
        topic = image.topics_by_id.get(topic_id) if known.failed_log_dirs else None
        found = None if topic is None else topic.partition(partition)
        return found is None or known.has_online(found.directory_of(broker))


class LeaderEnvironment(NamedTuple):
    """Of all leaders of a broker."""

    brokers: ReplicaBrokers
    changes: IsrChanges
    lag_seconds: float
    """replica.lag.time.max.ms."""


class _NoImages:
    image: MetadataImage = EMPTY_IMAGE


ALONE: Final = LeaderEnvironment(ReplicaBrokers(_NoImages(), lambda: -1), NoIsrChanges(), 30.0)
"""That of a broker which knows of no other one: no replica may join an in-sync set."""
