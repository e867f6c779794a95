"""What decisions about a group look at beside the group: the topics, the time, the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from strandline.clock import Clock
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.modern.topics import TopicHashes
from strandline.metadata import ConfigResource, ConfigResourceType, MetadataImage


class ModernLimits(Protocol):
    """The settings of one group: those of the broker, and what was set for the group itself."""

    @property
    def max_size(self) -> int: ...

    @property
    def session_timeout_ms(self) -> int: ...

    @property
    def heartbeat_interval_ms(self) -> int: ...

    @property
    def assignment_interval_ms(self) -> int: ...


L = TypeVar("L", bound=ModernLimits, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings(Generic[L]):
    """What one decision looks at."""

    image: MetadataImage
    hashes: TopicHashes
    now_ms: int
    limits: L


class GroupOutlook(Generic[L]):
    """What decisions about groups of one kind look at now. `limits` gets what was set for a group."""

    def __init__(self, topics: TopicIncarnations, clock: Clock, limits: Callable[[Mapping[str, str]], L]) -> None:
        self._topics, self._clock, self._hashes = topics, clock, TopicHashes()
        self.follow_settings(limits)

    def follow_settings(self, limits: Callable[[Mapping[str, str]], L]) -> None:
        """The settings of the broker have changed."""
        self._make_limits, self._defaults = limits, limits({})

    @property
    def image(self) -> MetadataImage:
        return self._topics.image

    def around(self, group_id: str) -> Surroundings[L]:
        image = self._topics.image
        limits = self.limits(image, group_id)
        return Surroundings(image=image, hashes=self._hashes, now_ms=self._clock.now_ms(), limits=limits)

    def limits(self, image: MetadataImage, group_id: str) -> L:
        """The settings of a group."""
        overrides = image.overrides(ConfigResource(ConfigResourceType.GROUP, group_id))
        return self._make_limits(overrides) if overrides else self._defaults
