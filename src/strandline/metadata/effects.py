"""What a decision of the controller does in the control plane, together with its records. Values, without any I/O.

A plan names effects; the controller carries them out in the transaction that writes the records of the plan
(`controller.carrying_out`). Some of them look something up that the metadata does not have, and may refuse the
decision: each says here when it does, and with which sentence.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from strandline.errors import InvalidConfig, InvalidRequest, StrandlineError
from strandline.metadata.image import MetadataImage, TopicImage

DISKLESS_FLAG: Final = "diskless.enable"
TIERING_FLAG: Final = "remote.storage.enable"
UNCLEAN_FLAG: Final = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSwitch:
    """A classic topic is to become diskless: request its switch."""

    topic_id: UUID
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatSwitch:
    """Request the switch of partitions whose boundary was reset, if there are any and none is requested."""

    topic_id: UUID
    topic: str
    partitions: int
    obstacle: StrandlineError | None
    """Why the topic could not start to become diskless now, from the metadata: refuses a switch that is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortSwitch:
    """A topic on its way to diskless stays classic after all: forget its switch."""

    topic_id: UUID
    topic: str

    def check(self, *, was_requested: bool, switched: int | None) -> None:
        """Raise InvalidConfig if the topic cannot go back. `switched`: a partition that has its boundary."""
        if switched is not None:
            raise InvalidConfig(
                f"{DISKLESS_FLAG} of {self.topic} cannot become false: partition {switched} is diskless already, and "
                "there is no way back. To have the records in a classic topic, copy them into a new one."
            )
        if not was_requested:  # its logs in the control plane are about to be made, or wait to be switched again
            raise InvalidConfig(
                f"{DISKLESS_FLAG} of {self.topic} cannot become false: the topic is not on its way from classic to "
                "diskless. One that was created diskless stays so; to have classic partitions, create another topic."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckUncleanElections:
    """A diskless topic gets unclean elections."""

    topic_id: UUID
    topic: str

    def check(self, switching: Collection[UUID]) -> None:
        """Raise InvalidConfig while the topic is on its way. `switching`: the topics whose switch is requested."""
        if self.topic_id in switching:
            raise InvalidConfig(
                f"{UNCLEAN_FLAG} of {self.topic} cannot become true while the topic becomes diskless. Try again when "
                "diskless.migration.state is not MIGRATING."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTiering:
    """A diskless topic becomes tiered as well."""

    topic_id: UUID
    topic: str

    def check(self, switching: Collection[UUID]) -> None:
        """Raise InvalidConfig unless the topic is on its way. `switching`: the topics whose switch is requested."""
        if self.topic_id not in switching:
            raise InvalidConfig(
                f"{TIERING_FLAG} of {self.topic} cannot become true: a diskless topic is not tiered in this version."
            )


@dataclass(frozen=True, slots=True)
class CheckUncleanDefault:
    """Unclean elections become the default of all topics."""

    image: MetadataImage

    def check(self, switching: Collection[UUID]) -> None:
        """Raise InvalidRequest while it would hold for a topic on its way. `switching`: those whose switch is
        requested."""
        for topic_id in switching:
            topic = self.image.topics_by_id.get(topic_id)
            if topic is not None and self._follows_default(topic):
                raise InvalidRequest(
                    f"{UNCLEAN_FLAG} cannot become true for all topics while {topic.name} becomes diskless. Set "
                    f"{UNCLEAN_FLAG}=false on that topic, or try again when its diskless.migration.state is not "
                    "MIGRATING."
                )

    def _follows_default(self, topic: TopicImage) -> bool:
        return self.image.topic_overrides(topic.name).get(UNCLEAN_FLAG, "true").strip().lower() != "false"


Check: TypeAlias = CheckUncleanElections | CheckTiering | CheckUncleanDefault
Effect: TypeAlias = RequestSwitch | RepeatSwitch | AbortSwitch | Check
