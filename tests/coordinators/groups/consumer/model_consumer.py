"""A client of a consumer group, as the model sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.coordinators.groups.modern.partitions import Partitions
from tests.coordinators.groups.consumer.shard_world import Answers


@dataclass(eq=False)
class Consumer:
    """What one client knows. `owned` is what it reads from now: two clients must never read the same partition."""

    name: str
    is_static: bool
    topics: tuple[str, ...] = ("orders",)
    regex: str = ""
    epoch: int = 0
    incarnation: int = 0
    owned: Partitions = field(default_factory=dict)
    told: Partitions | None = None
    waiting: Answers | None = None
    is_classic: bool = False
    classic_id: str = ""

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.incarnation}"

    @property
    def instance_id(self) -> str | None:
        return f"i-{self.name}" if self.is_static else None

    def forget(self) -> None:
        """The client starts over: it owns nothing and has no epoch."""
        self.epoch, self.owned, self.told, self.waiting, self.classic_id = 0, {}, None, None, ""
