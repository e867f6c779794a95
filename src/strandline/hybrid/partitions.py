"""The partitions that this broker serves: found by name, whatever tiers hold their records.

One dictionary holds partitions of all kinds, so finding one costs the same for each. It follows from the replicas of
this broker (`replica_changed`, `replica_removed`) and from its diskless topics (`add`, `remove`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from strandline.errors import StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.parts.part import NewestPart
from strandline.hybrid.parts.replica import ReplicaPart
from strandline.hybrid.reading import PendingRead, TierReader
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.traffic import TrafficByTopic
from strandline.reads import ReadResult
from strandline.replication import Partition


class Classic(NamedTuple):
    """A replica of this broker, as the only part of its partition."""

    part: ReplicaPart
    served: ServedPartition


class Partitions:
    """Every partition that this broker serves, by topic and number."""

    def __init__(
        self,
        tiered: TieredTopics,
        *,
        topic_name: Callable[[bytes], str],
        why_missing: Callable[[str, int], StrandlineError],
    ) -> None:
        """`why_missing` gives the error for a client that asks for a partition that this broker does not serve."""
        self.tiered = tiered
        self._why_missing = why_missing
        self._served: dict[tuple[str, int], ServedPartition] = {}
        self._forget: list[Callable[[], object]] = []
        self._classic: dict[Partition, Classic] = {}
        self.topic_name = topic_name
        self.traffic = TrafficByTopic(topic_name)

    @property
    def by_key(self) -> Mapping[tuple[str, int], ServedPartition]:
        """Every partition, always as it is now."""
        return self._served

    def find(self, topic: str, partition: int) -> ServedPartition:
        """The partition. Raises the error of `why_missing`."""
        found = self._served.get((topic, partition))
        if found is None:
            raise self._why_missing(topic, partition)
        return found

    def is_taken(self, topic: str, partition: int) -> bool:
        """True if this broker takes records for the partition now.

        A replica that does not lead takes none; a diskless partition takes them on every broker.
        """
        found = self._served.get((topic, partition))
        if found is None:
            return False
        try:
            found.newest.check_leader()
        except StrandlineError:
            return False
        return True

    def classic(self, replica: Partition) -> Classic:
        """The classic partition over a replica of this broker, whether it is served or not."""
        return self._classic[replica]

    # Following replicas and diskless topics

    def serve(self, newest: NewestPart) -> None:
        """Serve the partition whose newest part this is, instead of another one of that name."""
        self.add(ServedPartition(newest))

    def add(self, partition: ServedPartition) -> None:
        """Serve a partition, instead of another one of that name."""
        self._served[partition.topic_partition] = partition
        self._changed()

    def remove(self, newest: NewestPart) -> None:
        """Do not serve a partition any more. Harmless if one of that name is served that has another newest part."""
        served = self._served.get(newest.topic_partition)
        if served is not None and served.newest is newest:
            del self._served[newest.topic_partition]
            self._changed()

    def when_changed(self, forget: Callable[[], object]) -> None:
        """Call `forget` whenever a partition was added or removed: callers must not keep old ones, or their files."""
        self._forget.append(forget)

    def _changed(self) -> None:
        for forget in self._forget:
            forget()

    def replica_changed(self, replica: Partition) -> None:
        """See `ReplicaListener`."""
        if replica not in self._classic:
            part = ReplicaPart(replica, self.tiered)
            classic = self._classic[replica] = Classic(part, ServedPartition(part))
            self.add(classic.served)

    def replica_removed(self, replica: Partition, *, is_deleted: bool) -> None:
        """See `ReplicaListener`."""
        classic = self._classic.pop(replica, None)
        if classic is not None:
            self.remove(classic.part)

    # Reads that memory cannot answer

    async def read(
        self,
        pending: Sequence[PendingRead],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """Answer pending reads: those of one tier together and fairly, all tiers at the same time.

        Each tier gets a share of `max_bytes` by its number of partitions. One first batch of the response may exceed
        the limits.
        """
        of_reader: dict[TierReader, list[int]] = {}
        for index, read in enumerate(pending):
            of_reader.setdefault(read.reader, []).append(index)
        readers = sorted(of_reader, key=lambda reader: not reader.always_gives_a_batch)
        left, reads = max_bytes, []
        for reader in readers:
            share = left if reader is readers[-1] else max_bytes * len(of_reader[reader]) // len(pending)
            left -= share
            reads.append(
                reader.read(
                    [pending[index].request for index in of_reader[reader]],
                    max_bytes=share,
                    min_one_message=min_one_message and reader is readers[0],
                    is_wanted=is_wanted,
                )
            )
        answers: dict[int, ReadResult | StrandlineError] = {}
        for reader, results in zip(readers, await asyncio.gather(*reads), strict=True):
            answers.update(zip(of_reader[reader], results, strict=True))
        return [answers[index] for index in range(len(pending))]
