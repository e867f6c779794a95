"""Brokers without a network: each has one log, and copies it from the leader that it knows.

Requests and answers are values that a test carries from one to the other, or loses, or brings too late. A leader
serves them by the rules of Kafka, in the order of Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import UUID

from strandline.clock import SystemChance
from strandline.config import Settings
from strandline.config.replication import ReplicationSettings
from strandline.config.topic import TopicConfig
from strandline.errors import OffsetOutOfRange
from strandline.log import LogDirectory, LogEnvironment, create_log
from strandline.metadata import PartitionImage
from strandline.model import NO_LEADER, TopicPartition
from strandline.reads import EARLIEST, LATEST, FetchIsolation
from strandline.records import Record, build_batch, iter_headers
from strandline.replication import Partition
from strandline.replication.fetching.ranges import OffsetAnswer, OffsetQuestion
from strandline.replication.fetching.state import FetcherState
from strandline.testing.clock import VirtualClock
from strandline.wire.errors import ErrorCode
from strandline.wire.fetch_client import FetchedPartition, FetchedPartitions, FollowerFetch
from strandline.wire.fetch_codec import FetchEntry
from tests.log.harness import NOW
from tests.replication.manual_writer import ManualWriter

TP: Final = TopicPartition("orders", 0)
TOPIC_ID: Final = UUID(int=7)
SETTINGS: Final = ReplicationSettings()
LARGE: Final = 300_000


class Frame:
    """Counts the writes that need it."""

    def __init__(self) -> None:
        self.holds = 0

    def hold(self) -> None:
        self.holds += 1

    def release(self) -> None:
        self.holds -= 1
        assert self.holds >= 0


@dataclass
class ServedSession:
    """What a leader remembers of one follower."""

    number: int
    epoch: int
    entries: dict[tuple[bytes, int], FetchEntry] = field(default_factory=dict)


def topic_config(**overrides: str) -> TopicConfig:
    return Settings().topic_config({name.replace("_", "."): value for name, value in overrides.items()})


class Node:
    """One broker. `image` is the metadata that it has applied."""

    def __init__(self, node_id: int, directory: Path, **config: str) -> None:
        self.node_id = node_id
        directory.mkdir(parents=True)
        self.clock = VirtualClock(NOW)
        env = LogEnvironment(directory=LogDirectory(str(directory)), clock=self.clock, chance=SystemChance(1))
        self.cut: list[int] = []
        env.on_truncated = lambda log, offset: self.cut.append(offset)
        log = create_log(TP, topic_config(max_message_bytes="1000000", **config), env, topic_id=TOPIC_ID)
        self.writer = ManualWriter()
        self.partition = Partition(TP, TOPIC_ID, log, node_id=node_id, writer=self.writer)
        self.log = log
        self.wakes = 0
        self.states: dict[int, FetcherState] = {}
        self._sessions: dict[int, ServedSession] = {}
        self._ends: dict[int, int] = {}
        self._last_session = 0

    # Metadata

    def apply(self, image: PartitionImage) -> None:
        """Take newer metadata, as `ReplicaFetchers` does."""
        before = self.partition.leader_epoch
        self.partition.follow(image)
        if self.partition.leader_epoch != before:
            self._ends.clear()
        for leader, state in self.states.items():
            if leader != self.partition.leader or self.partition.is_leader:
                state.leave((TOPIC_ID.bytes, 0))
        if not self.partition.is_leader and self.partition.leader != NO_LEADER:
            self.state.follow(self.partition)

    @property
    def state(self) -> FetcherState:
        """The fetcher of the leader that it knows."""
        leader = self.partition.leader
        if leader not in self.states:
            self.states[leader] = FetcherState(
                SETTINGS, node_id=self.node_id, broker_epoch=lambda: 5, woken=self._woken
            )
        return self.states[leader]

    def _woken(self) -> None:
        self.wakes += 1

    def write_all(self) -> None:
        """Let the writer thread carry out everything."""
        while self.writer.submitted:
            self.writer.write_next()

    # Leading

    def append(self, *values: bytes) -> None:
        """What a producer sends to this broker while it leads."""
        records = [Record(at, NOW, b"key", value) for at, value in enumerate(values)]
        info = self.log.begin_append(memoryview(build_batch(records)), leader_epoch=self.partition.leader_epoch)
        if self.log.appender.pending[0] is not info:
            self.writer.submit(info, lambda error: self._appended(info))
        else:
            info.write()
            self._appended(info)

    def append_later(self, *values: bytes) -> None:
        """The same, large enough for the writer thread."""
        records = [Record(at, NOW, b"key", value.ljust(LARGE, b".")) for at, value in enumerate(values)]
        pending = self.log.begin_append(memoryview(build_batch(records)), leader_epoch=self.partition.leader_epoch)
        self.writer.submit(pending, lambda error: self._appended(pending))

    def roll_and_drop(self) -> None:
        """Retention deletes all closed segments."""
        log = self.log
        log.roll()
        log.delete_records(log.log_end_offset)
        for segment in log.segments.as_list()[:-1]:
            log.segments.discard(segment)

    def _appended(self, pending: object) -> None:
        self.log.finish_append(pending)  # type: ignore[arg-type]
        self.partition.log_has_grown()

    def serve(self, request: FollowerFetch) -> FetchedPartitions:
        """The answer of this broker, whoever leads."""
        number = request.session_id
        if request.session_epoch == 0:
            self._sessions.pop(number, None)
            self._last_session += 1
            session = ServedSession(self._last_session, 1)
            self._sessions[session.number] = session
        else:
            known = self._sessions.get(number)
            if known is None:
                return FetchedPartitions(int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), 0, [])
            if known.epoch != request.session_epoch:
                return FetchedPartitions(int(ErrorCode.INVALID_FETCH_SESSION_EPOCH), 0, [])
            session = known
            session.epoch += 1
        for key in request.forgotten:
            session.entries.pop(key)
        for entry in request.entries:
            session.entries[entry.topic, entry.partition] = entry  # type: ignore[index]
        rows = [self._read(request.replica_id, entry) for entry in session.entries.values()]
        return FetchedPartitions(0, session.number, rows)

    def _read(self, replica: int, entry: FetchEntry) -> FetchedPartition:
        partition, log = self.partition, self.log
        row = FetchedPartition(TOPIC_ID.bytes, 0, 0, log.high_watermark, log.log_start_offset, None, None)
        error = self._refusal(entry)
        if error:
            return row._replace(error_code=int(error), high_watermark=-1, log_start_offset=-1)
        if entry.last_fetched_epoch >= 0:
            epoch, end = log.end_offset_for_epoch(entry.last_fetched_epoch)
            if epoch < 0 or end < 0:
                return row._replace(error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
            if epoch < entry.last_fetched_epoch or end < entry.fetch_offset:
                return row._replace(diverging_epoch=(epoch, end))
        try:
            found = log.read(entry.fetch_offset, entry.max_bytes, isolation=FetchIsolation.LOG_END)
        except OffsetOutOfRange:
            return row._replace(error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
        self._ends[replica] = entry.fetch_offset
        others = [broker for broker in partition.replicas if broker != self.node_id]
        if all(broker in self._ends for broker in others):
            reached = min([log.log_end_offset, *(self._ends[broker] for broker in others)])
            if reached > log.high_watermark:
                log.update_high_watermark(reached)
        records = None if found.records is None else memoryview(bytearray(found.records.read()))
        return row._replace(records=records, high_watermark=log.high_watermark)

    def _refusal(self, entry: FetchEntry) -> int:
        if entry.current_leader_epoch < self.partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if entry.current_leader_epoch > self.partition.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return 0 if self.partition.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def offsets(self, question: OffsetQuestion) -> list[OffsetAnswer]:
        """The answer to ListOffsets."""
        answers = []
        for followed in question.followed:
            asked = FetchEntry(b"", 0, followed.leader_epoch, 0, -1, 0, 0)
            error = int(self._refusal(asked))
            offset = {LATEST: self.log.log_end_offset, EARLIEST: self.log.log_start_offset}[question.timestamp]
            answers.append(OffsetAnswer(TP.topic, 0, error, -1 if error else offset))
        return answers

    def forget_sessions(self) -> None:
        self._sessions.clear()

    def batches(self, start: int = 0) -> list[bytes]:
        """Every batch of the log, as it lies in the file."""
        found = []
        for segment in self.log.segments:
            data = segment.file.read(0, segment.size)
            found += [data[at : at + header.size] for at, header in iter_headers(data) if header.last_offset >= start]
        return found


class Cluster:
    """Three brokers, and the newest metadata."""

    def __init__(self, directory: Path, count: int = 3, **config: str) -> None:
        self.nodes = [Node(number, directory / str(number), **config) for number in range(count)]
        self.image = PartitionImage(0, tuple(range(count)), tuple(range(count)), NO_LEADER, 0, 0)
        self.now = 0.0
        self.under_way: dict[int, tuple[int, FollowerFetch | OffsetQuestion]] = {}
        """By follower: the leader, and what it was asked."""

    def elect(self, leader: int) -> None:
        """New metadata, which no broker knows yet."""
        self.image = self.image.changed(None, leader, None)

    def apply(self, node: int) -> None:
        """A broker learns the newest metadata."""
        if self.nodes[node].partition.partition_epoch < self.image.partition_epoch:
            self.nodes[node].apply(self.image)

    def lead(self, leader: int) -> Node:
        """Elect, and let all know."""
        self.elect(leader)
        for node in range(len(self.nodes)):
            self.apply(node)
        return self.nodes[leader]

    def ask(self, follower: int) -> bool:
        """A follower sends its next request, unless one is under way."""
        node = self.nodes[follower]
        leader = node.partition.leader
        if follower in self.under_way or leader in (NO_LEADER, follower):
            return False
        request = node.state.next_request(self.now)
        if request is None:
            return False
        self.under_way[follower] = (leader, request)
        return True

    def answer(self, follower: int) -> bool:
        """Its leader, or the one that was it, answers."""
        if follower not in self.under_way:
            return False
        leader, request = self.under_way.pop(follower)
        node = self.nodes[follower]
        state = node.states[leader]
        if isinstance(request, OffsetQuestion):
            state.offsets_answered(request, self.nodes[leader].offsets(request), self.now)
        else:
            state.answered(self.nodes[leader].serve(request), Frame(), self.now)
        return True

    def lose(self, follower: int) -> None:
        """The connection of a follower breaks: the leader may have read the request."""
        leader, request = self.under_way.pop(follower, (NO_LEADER, None))
        if isinstance(request, FollowerFetch):
            self.nodes[leader].serve(request)
        if leader != NO_LEADER:
            self.nodes[follower].states[leader].lost()

    def exchange(self, *followers: int, rounds: int = 1) -> None:
        """Requests and answers in turn."""
        for _ in range(rounds):
            for follower in followers or range(len(self.nodes)):
                self.ask(follower)
                self.answer(follower)

    def settle(self) -> None:
        """Everything that is under way ends, all brokers know the newest metadata, and all copy what they lack."""
        for number in range(len(self.nodes)):
            self.apply(number)
        for _ in range(100):
            for number, node in enumerate(self.nodes):
                node.write_all()
                self.answer(number)
                self.ask(number)
                self.answer(number)
            self.now += 2.0
            if self.is_settled():
                return
        raise AssertionError([(node.log, [*node.state.followed]) for node in self.nodes])

    def is_settled(self) -> bool:
        leader = self.nodes[self.image.leader].log
        return all(
            (node.log.log_end_offset, node.log.high_watermark, node.log.log_start_offset)
            == (leader.log_end_offset, leader.log_end_offset, leader.log_start_offset)
            and not node.log.has_pending_appends
            for node in self.nodes
        )

    def check_same(self) -> None:
        """All logs are the leader's, byte for byte, with its epochs and producers."""
        leader = self.nodes[self.image.leader]
        start = leader.log.log_start_offset
        expected = leader.batches(start)
        for node in self.nodes:
            assert node.batches(start) == expected
            assert [entry for entry in node.log.epochs.entries if entry[1] < node.log.log_end_offset] == [
                entry for entry in leader.log.epochs.entries if entry[1] < leader.log.log_end_offset
            ]
