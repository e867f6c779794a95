"""A member of a share group of single requests: it follows the coordinator and the leaders, and survives both.

Every request may fail: a broker that is away is tried again by the next call. What a member has learned is an answer of
a broker, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.records import iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.share_acknowledge import AcknowledgementBatch as Acknowledged
from strandline.wire.messages.share_acknowledge import AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest
from strandline.wire.messages.share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic, ShareFetchRequest
from strandline.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE: Final = 32
SHARE_COORDINATOR: Final = 2
_SET: Final = 0
E = ErrorCode
_OVER: Final = {E.SHARE_SESSION_NOT_FOUND, E.INVALID_SHARE_SESSION_EPOCH}
_REJOIN: Final = {E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND}

Answer = tuple[int, int, int]
"""Partition, offset, acknowledge type."""


class Delivered(NamedTuple):
    """One record that the member has got."""

    partition: int
    offset: int
    delivery_count: int
    value: bytes


class Failed(Exception):
    """A broker is away, has moved on, or says so: try again."""


@dataclass(slots=True)
class _Session:
    client: Client
    topic_id: UUID
    partitions: frozenset[int]
    epoch: int = 0


@dataclass(slots=True)
class RawShareMember:
    """One member, with a connection and a share session for each broker that leads some of its partitions."""

    addresses: Callable[[], Sequence[str]]
    """Where brokers may be found."""
    group: str
    topic: str
    member_id: str
    epoch: int = 0
    assigned: frozenset[int] = frozenset()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of its fetches."""
    topic_id: UUID = ZERO_UUID
    _brokers: dict[str, Client] = field(default_factory=dict)
    _sessions: dict[int, _Session] = field(default_factory=dict)
    _coordinator: str | None = None
    _must_say_all: bool = True
    """After an error the coordinator may have told something that did not arrive: it is asked for everything."""

    # Connections

    def close(self) -> None:
        """Leave without a word."""
        for client in self._brokers.values():
            client.close()
        for session in self._sessions.values():
            session.client.close()
        self._brokers.clear()
        self._sessions.clear()

    def _ask(self, address: str, key: ApiKey, request: Any, *, version: int | None = None) -> Any:
        try:
            client = self._brokers.get(address)
            if client is None:
                client = self._brokers[address] = connect(address)
            return client.request(key, request, version=version)
        except OSError as error:
            gone = self._brokers.pop(address, None)
            if gone is not None:
                gone.close()
            raise Failed(f"{address}: {error}") from error

    def ask_any(self, key: ApiKey, request: Any) -> Any:
        """The answer of the first broker that gives one. Raises Failed."""
        for address in self.addresses():
            with suppress(Failed):
                return self._ask(address, key, request)
        raise Failed("no broker answers")

    # Membership

    def _find_coordinator(self) -> str:
        if self._coordinator is None:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
            [found] = self.ask_any(ApiKey.FIND_COORDINATOR, request).coordinators
            if found.error_code:
                raise Failed(E(found.error_code).name)
            self._coordinator = f"{found.host}:{found.port}"
        return self._coordinator

    def ask_coordinator(self, key: ApiKey, request: Any) -> Any:
        """Raises Failed."""
        try:
            return self._ask(self._find_coordinator(), key, request)
        except Failed:
            self._coordinator, self._must_say_all = None, True
            raise

    def heartbeat(self, epoch: int | None = None) -> ErrorCode:
        """Join, go on or leave (-1). Raises Failed."""
        epoch = self.epoch if epoch is None else epoch
        answer = self.ask_coordinator(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=epoch,
                subscribed_topic_names=[self.topic] if epoch == 0 or self._must_say_all else None,
            ),
        )
        code = E(answer.error_code)
        if code is E.NONE:
            self.epoch, self._must_say_all = answer.member_epoch, False
            if answer.assignment is not None:
                self.assigned = frozenset(one for at in answer.assignment.topic_partitions for one in at.partitions)
        elif code in _REJOIN:
            self.epoch, self.assigned = 0, frozenset()
        else:
            self._coordinator, self._must_say_all = None, True
        return code

    def leave(self) -> None:
        """End the sessions, which gives records back, and the membership. Raises Failed."""
        for broker in tuple(self._sessions):
            self._session_request(broker, epoch=-1)
            self._sessions.pop(broker).client.close()
        assert self.heartbeat(-1) in (E.NONE, *_REJOIN)

    # Records

    def leaders(self) -> dict[int, tuple[int, str]]:
        """The broker and its address by partition, as any broker says. Raises Failed."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False)
        answer = self.ask_any(ApiKey.METADATA, request)
        [topic] = answer.topics
        if topic.error_code:
            raise Failed(E(topic.error_code).name)
        self.topic_id = topic.topic_id
        brokers = {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        return {
            one.partition_index: (one.leader_id, brokers[one.leader_id])
            for one in topic.partitions
            if one.leader_id in brokers
        }

    def _lead(self) -> None:
        """Have a session with each broker that leads partitions of the member, for exactly these. Raises Failed."""
        wanted: dict[int, frozenset[int]] = {}
        addresses: dict[int, str] = {}
        for partition, (broker, address) in self.leaders().items():
            if partition in self.assigned:
                wanted[broker] = wanted.get(broker, frozenset()) | {partition}
                addresses[broker] = address
        for broker, session in tuple(self._sessions.items()):
            if (session.topic_id, session.partitions) != (self.topic_id, wanted.get(broker, frozenset())):
                self._sessions.pop(broker).client.close()
        for broker, partitions in wanted.items():
            if broker not in self._sessions:
                try:
                    client = connect(addresses[broker])
                except OSError as error:
                    raise Failed(str(error)) from error
                self._sessions[broker] = _Session(client, self.topic_id, partitions)

    def fetch(self, said: Sequence[Answer] = (), *, max_wait_ms: int = 100) -> tuple[list[Delivered], list[Answer]]:
        """What was delivered, and which of the answers that came along were taken. Asks each leader once.

        A leader that is away costs what it would have answered.
        """
        try:
            self._lead()
        except Failed:
            return [], []
        found: list[Delivered] = []
        taken: list[Answer] = []
        for broker in tuple(self._sessions):
            with suppress(Failed):
                mine = [one for one in said if one[0] in self._sessions[broker].partitions]
                delivered, accepted = self._fetch_from(broker, mine, max_wait_ms)
                found += delivered
                taken += accepted
        return found, taken

    def _fetch_from(self, broker: int, said: list[Answer], max_wait_ms: int) -> tuple[list[Delivered], list[Answer]]:
        session = self._sessions[broker]
        if not session.epoch:
            said = []  # about records of a session that is over
        batches = {
            at: [
                AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=[kind])
                for offset, kind in sorted(rows)
            ]
            for at, rows in _by_partition(said).items()
        }
        named = batches.keys() if session.epoch else session.partitions
        partitions = [
            FetchPartition(partition_index=at, acknowledgement_batches=batches.get(at, [])) for at in sorted(named)
        ]
        answer = self._session_request(
            broker,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else [],
            max_wait_ms=max_wait_ms,
            **{"min_bytes": 1, "max_records": 20, "batch_size": 20, "max_bytes": 1 << 20, **self.fields},
        )
        rows = [row for topic in answer.responses for row in topic.partitions]
        good = {row.partition_index for row in rows if row.acknowledge_error_code == E.NONE}
        return [one for row in rows for one in _delivered(row)], [one for one in said if one[0] in good]

    def _session_request(self, broker: int, *, epoch: int | None = None, **fields: Any) -> Any:
        session = self._sessions[broker]
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=session.epoch if epoch is None else epoch,
            **fields,
        )
        return self._with_session(broker, ApiKey.SHARE_FETCH, request)

    def _with_session(self, broker: int, key: ApiKey, request: Any) -> Any:
        session = self._sessions[broker]
        try:
            answer: Any = session.client.request(key, request)
        except OSError as error:
            self._sessions.pop(broker).client.close()
            raise Failed(str(error)) from error
        if answer.error_code:
            assert answer.error_code in _OVER, E(answer.error_code)
            self._sessions.pop(broker).client.close()
            raise Failed(E(answer.error_code).name)
        session.epoch += 1
        return answer

    def acknowledge(self, said: Sequence[Answer]) -> list[Answer]:
        """Those of the answers that were taken."""
        taken: list[Answer] = []
        for broker, session in tuple(self._sessions.items()):
            mine = _by_partition([one for one in said if one[0] in session.partitions])
            if not mine or not session.epoch:
                continue
            partitions = [
                AcknowledgePartition(
                    partition_index=at,
                    acknowledgement_batches=[
                        Acknowledged(first_offset=offset, last_offset=offset, acknowledge_types=[kind])
                        for offset, kind in sorted(rows)
                    ],
                )
                for at, rows in mine.items()
            ]
            request = ShareAcknowledgeRequest(
                group_id=self.group,
                member_id=self.member_id,
                share_session_epoch=session.epoch,
                topics=[AcknowledgeTopic(topic_id=self.topic_id, partitions=partitions)],
            )
            with suppress(Failed):
                answer = self._with_session(broker, ApiKey.SHARE_ACKNOWLEDGE, request)
                rows = [row for topic in answer.responses for row in topic.partitions]
                good = {row.partition_index for row in rows if row.error_code == E.NONE}
                taken += [one for one in said if one[0] in good]
        return taken

    # What is stored

    def offsets(self) -> dict[int, tuple[int, int]]:
        """Start offset and lag by partition, as the coordinator of the group says. Raises Failed."""
        group = DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=None)
        [found] = self.ask_coordinator(
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, DescribeShareGroupOffsetsRequest(groups=[group])
        ).groups
        if found.error_code:
            self._coordinator = None
            raise Failed(E(found.error_code).name)
        rows = [row for topic in found.topics if topic.topic_name == self.topic for row in topic.partitions]
        return {row.partition_index: (row.start_offset, row.lag) for row in rows if not row.error_code}


def connect(address: str) -> Client:
    host, port = address.rsplit(":", 1)
    return Client.connect(host, int(port))


def set_group_config(client: Client, group: str, **configs: str) -> None:
    """Settings of a group, with underscores for dots."""
    entries = [
        AlterableConfig(name=name.replace("_", "."), config_operation=_SET, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=entries)
    answer: Any = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]))
    assert [row.error_code for row in answer.responses] == [0], answer.responses[0].error_message


def _by_partition(said: Sequence[Answer]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for partition, offset, kind in said:
        found.setdefault(partition, []).append((offset, kind))
    return found


def _delivered(row: Any) -> Iterator[Delivered]:
    data = row.records or b""
    values = {
        record.offset: record.value or b""
        for position, header in iter_headers(data)
        for record in read_records(data[position : position + header.size])
    }
    for one in row.acquired_records:
        for offset in range(one.first_offset, one.last_offset + 1):
            yield Delivered(row.partition_index, offset, one.delivery_count, values[offset])
