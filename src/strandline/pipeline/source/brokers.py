"""What the data source asks brokers in Kafka's own protocol: partitions, offsets, and records that only they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Event
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar
from uuid import UUID

from strandline.client import Cluster, CommandFailed, explain, sentences
from strandline.clock import Clock, SystemClock
from strandline.model import ZERO_UUID, Offset, TimestampMs, TopicIdPartition, TopicPartition
from strandline.pipeline.source.errors import RecordsGone, SourceFailed
from strandline.pipeline.source.places import recreated
from strandline.pipeline.source.positions import LATEST
from strandline.reads import FetchIsolation
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

T = TypeVar("T")

_CONSUMER: Final = -1
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0
_REQUEST_S: Final = 30.0
_FETCH_WAIT_MS: Final = 500
_SETTLE_S: Final = 5.0
_OTHER_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})
_GONE: Final = frozenset({ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE})
_FINAL: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class SourceTopic(NamedTuple):
    """A topic as brokers know it now."""

    topic_id: UUID
    """ZERO_UUID if brokers do not tell."""
    partitions: tuple[int, ...]


class FetchedRecords(NamedTuple):
    """The answer to one Fetch."""

    data: bytes
    """Batches; the last one may be cut."""
    aborted: tuple[tuple[int, Offset], ...]
    """Producer ids of aborted transactions, and where each begins."""


class _TryAgain(CommandFailed):
    """A broker answered with an error that may pass."""


class TopicBrokers:
    """The brokers of one cluster, by one connection each. Blocking, for one thread at a time.

    Goes on when brokers come and go, for `timeout_s` seconds; then raises SourceFailed.
    """

    def __init__(
        self, bootstrap: str, *, timeout_s: float, settle_s: float = _SETTLE_S, clock: Clock | None = None
    ) -> None:
        self._bootstrap = [address.strip() for address in bootstrap.split(",") if address.strip()]
        self._timeout_s, self._settle_s, self._clock = timeout_s, settle_s, clock or SystemClock()
        self._cluster: Cluster | None = None
        self._leaders: dict[TopicPartition, int] = {}
        self._turn = 0
        self._closed = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a thread that waits for a broker gives up."""
        self._closed.set()
        self._forget()

    def topics(self, names: Collection[str]) -> dict[str, SourceTopic]:
        """Ids and partitions of topics. Raises SourceFailed, also if there is no such topic."""
        return self._until_answered(
            "tell the partitions of the topics", lambda cluster: self._ask_topics(cluster, names)
        )

    def offsets(
        self, moments: Mapping[TopicPartition, TimestampMs], isolation: FetchIsolation
    ) -> dict[TopicPartition, Offset]:
        """The first offset at or after a time; -1 if there is none. EARLIEST and LATEST are times as well."""
        if not moments:
            return {}
        return self._until_answered("tell offsets", lambda cluster: self._ask_offsets(cluster, moments, isolation))

    def log_ends(self, expected: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """The high watermarks of partitions that are known to have reached some offsets.

        A new leader may lag behind for a moment: an end is only below what is expected if it stays there.
        """
        deadline = self._clock.monotonic() + self._settle_s
        while True:
            found = self.offsets(dict.fromkeys(expected, LATEST), FetchIsolation.HIGH_WATERMARK)
            is_there = all(found[partition] >= offset for partition, offset in expected.items())
            if is_there or self._clock.monotonic() >= deadline or self._closed.wait(_FIRST_PAUSE_S):
                return found

    def fetch(
        self, partition: TopicIdPartition, offset: Offset, isolation: FetchIsolation, *, max_bytes: int
    ) -> FetchedRecords:
        """Records from an offset on. Raises RecordsGone if the log does not have it, SourceFailed."""
        return self._until_answered(
            f"give records of {partition.topic_partition}",
            lambda cluster: self._ask_records(cluster, partition, offset, isolation, max_bytes),
        )

    # How

    def _until_answered(self, what: str, ask: Callable[[Cluster], T]) -> T:
        deadline = self._clock.monotonic() + self._timeout_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                if self._cluster is None:
                    address = self._bootstrap[self._turn % len(self._bootstrap)]
                    self._cluster = Cluster(address, timeout_s=min(self._timeout_s, _REQUEST_S))
                with sentences():
                    return ask(self._cluster)
            except CommandFailed as failure:
                self._forget()
                self._turn += 1
                left = deadline - self._clock.monotonic()
                if left <= 0 or self._closed.is_set():
                    raise SourceFailed(
                        f"No broker of {','.join(self._bootstrap)} could {what} within {self._timeout_s:g} s "
                        f"(timeoutMs): {failure}"
                    ) from failure
                self._closed.wait(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _forget(self) -> None:
        cluster, self._cluster = self._cluster, None
        self._leaders.clear()
        if cluster is not None:
            cluster.__exit__(None, None, None)

    def _ask_topics(self, cluster: Cluster, names: Collection[str]) -> dict[str, SourceTopic]:
        found: dict[str, SourceTopic] = {}
        for topic in cluster.metadata(names).topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise SourceFailed(f"There is no topic {topic.name} in the cluster at {','.join(self._bootstrap)}.")
            _check(topic.error_code, None, f"Topic {topic.name} cannot be read")
            name = topic.name or ""
            numbers = sorted(row.partition_index for row in topic.partitions)
            found[name] = SourceTopic(topic.topic_id, tuple(numbers))
            self._leaders.update((TopicPartition(name, row.partition_index), row.leader_id) for row in topic.partitions)
        return found

    def _leader(self, cluster: Cluster, partition: TopicPartition) -> int:
        if partition not in self._leaders:
            self._ask_topics(cluster, [partition.topic])
        leader = self._leaders.get(partition, -1)
        if leader < 0:
            raise _TryAgain(f"{partition} has no leader at the moment.")
        return leader

    def _ask_offsets(
        self, cluster: Cluster, moments: Mapping[TopicPartition, TimestampMs], isolation: FetchIsolation
    ) -> dict[TopicPartition, Offset]:
        by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(lambda: defaultdict(list))
        for partition, moment in moments.items():
            wish = ListOffsetsPartition(partition_index=partition.partition, timestamp=moment)
            by_leader[self._leader(cluster, partition)][partition.topic].append(wish)
        found: dict[TopicPartition, Offset] = {}
        for leader, topics in by_leader.items():
            request = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=_level(isolation),
                topics=[ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()],
                timeout_ms=int(_REQUEST_S * 1000),
            )
            answer = cluster.broker(leader).request(ApiKey.LIST_OFFSETS, request)
            for topic in answer.topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.name, row.partition_index)
                    _check(row.error_code, None, f"The offsets of {partition} cannot be found")
                    found[partition] = row.offset
        return found

    def _ask_records(
        self,
        cluster: Cluster,
        partition: TopicIdPartition,
        offset: Offset,
        isolation: FetchIsolation,
        max_bytes: int,
    ) -> FetchedRecords:
        client = cluster.broker(self._leader(cluster, partition.topic_partition))
        request = fetch_request(partition, offset, _level(isolation), max_bytes)
        answer: Any = client.request(ApiKey.FETCH, request)
        _check(answer.error_code, None, f"{partition.topic_partition} cannot be read")
        row = answer.responses[0].partitions[0]
        if row.error_code in _OTHER_TOPIC:
            now = self._ask_topics(cluster, [partition.topic])[partition.topic].topic_id
            if now not in (ZERO_UUID, partition.topic_id):
                raise recreated(partition.topic_partition)
        if row.error_code in _GONE:
            raise RecordsGone(f"Offset {offset} of {partition.topic_partition} is not in the log.")
        _check(row.error_code, None, f"{partition.topic_partition} cannot be read at offset {offset}")
        aborted = tuple((one.producer_id, one.first_offset) for one in row.aborted_transactions or ())
        return FetchedRecords(row.records or b"", aborted)


def fetch_request(partition: TopicIdPartition, offset: Offset, isolation_level: int, max_bytes: int) -> FetchRequest:
    """A Fetch of one partition, outside of any session. Topics have names up to version 12 and ids behind it."""
    wish = FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = FetchTopic(topic=partition.topic, topic_id=partition.topic_id, partitions=[wish])
    return FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=_FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[topic],
    )


def _level(isolation: FetchIsolation) -> int:
    return 1 if isolation is FetchIsolation.TXN_COMMITTED else 0


def _check(error_code: int, message: str | None, what: str) -> None:
    """Raise what the error of a broker means: SourceFailed if it will not pass."""
    if error_code == ErrorCode.NONE:
        return
    sentence = f"{what}: {explain(error_code, message)}"
    if error_code in _FINAL:
        raise SourceFailed(sentence)
    raise _TryAgain(sentence)


def flattened(partitions: Mapping[str, Iterable[int]]) -> list[TopicPartition]:
    """Every partition, by topic and number."""
    return [TopicPartition(topic, number) for topic in sorted(partitions) for number in partitions[topic]]
