"""What a run is like. Everything follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A cluster, its topic, and how it is treated."""

    seed: int
    brokers: int = 3
    partitions: int = 1
    replicas: int = 3
    min_isr: int = 2
    steps: int = 40
    late_writes: bool = False
    """Every append is forced to disk, and written by the thread of its directory."""
    small_segments: bool = False
    may_lose_data: bool = False
    """Leaders that are not in sync may be elected, and disks are lost without regard."""

    @classmethod
    def of_seed(cls, seed: int, *, steps: int = 40) -> Scenario:
        """One of all kinds."""
        chance = random.Random(f"{seed}/scenario")
        brokers = chance.choice((3, 3, 3, 4))
        return cls(
            seed=seed,
            steps=steps,
            brokers=brokers,
            partitions=chance.choice((1, 1, 2)),
            replicas=chance.choice((2, 3, 3, 3)),
            min_isr=chance.choice((1, 2, 2)),
            late_writes=chance.random() < 0.3,
            small_segments=chance.random() < 0.4,
            may_lose_data=chance.random() < 0.15,
        )

    @property
    def topic_config(self) -> dict[str, str]:
        """Settings of the topic."""
        config = {"min_insync_replicas": str(self.min_isr), "file_delete_delay_ms": "200"}
        if self.late_writes:
            config["flush_messages"] = "1"
        if self.small_segments:
            config["internal_segment_bytes"] = "700"
        if self.may_lose_data:
            config["unclean_leader_election_enable"] = "true"
        return config
