"""Produce, versions 3 to 13 (0 to 2 are advertised for old librdkafka, and refused by closing).

Each partition gets its own answer: a refusal or a timeout never hides another's success. Records are checked
by their batch header and checksum and are not decoded. One request may hold batches for classic and for diskless
topics; the latter are answered when they are committed, whatever acks says. The first batch of a transaction in a
partition waits for the transaction's coordinator (`server.transactions.gate`). Known gap: no quotas.
"""

from __future__ import annotations

import logging
from typing import Final

from strandline.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    RequestTimedOut,
    StrandlineError,
)
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.traffic import TrafficByTopic
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.model import INTERNAL_TOPICS, TopicPartition
from strandline.records import check_codec_of_version
from strandline.replication import ACKS_ALL, Append, Appended, LeaderRole
from strandline.server.deadlines import Deadline, Deadlines
from strandline.server.exchange import Exchange
from strandline.server.produce_failures import TOO_LARGE, count_failure, failure_of, not_replicated_within
from strandline.server.straight import ProduceRoutes
from strandline.server.transactions.gate import TransactionGate
from strandline.wire.produce_codec import (
    ProduceAnswer,
    ProduceEntry,
    ProduceRequest,
    read_produce_request,
    write_produce_response,
)

logger = logging.getLogger(__name__)

ADMIN_CLIENT_ID: Final = "__admin_client"
_ATTRIBUTES_BYTE: Final = 22
_HEADER_BYTES: Final = 61
_TRANSACTIONAL: Final = 0x10


class ProduceHandler:
    """Appends what producers send."""

    def __init__(self, partitions: Partitions, deadlines: Deadlines, transactions: TransactionGate) -> None:
        self._partitions = partitions
        self._transactions = transactions
        self._traffic = partitions.traffic
        self._deadlines = deadlines
        self._routes = ProduceRoutes(partitions, deadlines)

    def handle(self, frame: memoryview, position: int, exchange: Exchange, client_id: str | None) -> None:
        """Append every partition's batch in the order of the request, then answer or wait for replication."""
        request = read_produce_request(frame, position, exchange.api_version)
        production = _Production(exchange, request, self._deadlines, self._traffic)
        begun, written = len(exchange.begun), 0
        for index, entry in enumerate(request.entries):
            if index < begun:
                if request.acks == ACKS_ALL:
                    self._wait_for_replicas(entry, production, index)
                continue
            try:
                appended = self._append(request, entry, exchange, client_id, production, index)
            except StrandlineError as error:
                production.refused(index, error)
            else:
                production.appended(index, appended)
                written += appended.is_written
        if written and written == len(request.entries):
            if written == 1:
                self._learn_route(frame, exchange, request)
            else:
                self._routes.learn_head(exchange, frame, position, request)
        production.everything_started()

    def _wait_for_replicas(self, entry: ProduceEntry, production: _Production, index: int) -> None:
        """Entry `index` was appended on the straight path: other replicas may have to have it, too."""
        topic = entry.topic
        name = topic if isinstance(topic, str) else self._partitions.topic_name(topic)
        replica = self._partitions.find(name, entry.partition).appends.local_replica
        role = None if replica is None else replica.role
        if isinstance(role, LeaderRole) and not role.wait_replicated(lambda error: production.done(index, error)):
            production.waits_for_replicas(index)

    def _learn_route(self, frame: memoryview, exchange: Exchange, request: ProduceRequest) -> None:
        """The next request like this one can go straight to its log."""
        (entry,) = request.entries
        topic = entry.topic
        name = topic if isinstance(topic, str) else self._partitions.topic_name(topic)
        replica = self._partitions.find(name, entry.partition).appends.local_replica
        if replica is not None:
            self._routes.learn(exchange, frame, request, replica)

    def _append(
        self,
        request: ProduceRequest,
        entry: ProduceEntry,
        exchange: Exchange,
        client_id: str | None,
        production: _Production,
        index: int,
    ) -> Appended:
        if request.acks not in (-1, 0, 1):
            raise InvalidRequiredAcks(f"acks is {request.acks}; it must be -1 (all), 0 or 1.")
        partition = self._find(entry, client_id)
        self._traffic[entry.topic].produce_requests += 1
        records = _check_records(entry.records, partition.topic_partition, exchange.api_version)
        append = Append(
            records,
            acks=request.acks,
            origin=AppendOrigin.CLIENT,
            done=lambda error: production.done(index, error),
            written=lambda: production.written(index),
            is_borrowed=not exchange.holds_frame,
        )
        if records[_ATTRIBUTES_BYTE] & _TRANSACTIONAL:
            return self._transactions.append(
                partition, append, transactional_id=request.transactional_id, version=exchange.api_version
            )
        return partition.appends.append(append)

    def _find(self, entry: ProduceEntry, client_id: str | None) -> ServedPartition:
        topic = entry.topic
        name = topic if isinstance(topic, str) else self._partitions.topic_name(topic)
        if name in INTERNAL_TOPICS and client_id != ADMIN_CLIENT_ID:
            raise InvalidTopic(f"{name} is an internal topic; clients may not write to it.")
        return self._partitions.find(name, entry.partition)


def _check_records(records: memoryview | None, partition: TopicPartition, version: int) -> memoryview:
    """Refuse batches that the request version does not allow; the log checks the rest."""
    if records is None or len(records) < _HEADER_BYTES:
        raise InvalidRecord(f"The request holds no record batch for {partition}.")
    check_codec_of_version(records[_ATTRIBUTES_BYTE], version)
    return records


class _Production:
    """One Produce request until its last partition is done."""

    __slots__ = (
        "_answers",
        "_deadline",
        "_deadlines",
        "_exchange",
        "_in_frame",
        "_infos",
        "_is_answered",
        "_remaining",
        "_request",
        "_starting",
        "_traffic",
        "_uncommitted_bytes",
        "_unwritten",
    )

    def __init__(
        self, exchange: Exchange, request: ProduceRequest, deadlines: Deadlines, traffic: TrafficByTopic
    ) -> None:
        self._exchange = exchange
        self._request = request
        self._deadlines = deadlines
        self._traffic = traffic
        self._deadline: Deadline | None = None
        begun = exchange.begun
        self._answers: list[ProduceAnswer | None] = [*begun, *(None for _ in request.entries[len(begun) :])]
        self._infos: dict[int, LogAppendInfo] = {}
        self._unwritten: set[int] = set()
        self._remaining = 0
        self._starting = True
        self._is_answered = False
        self._uncommitted_bytes = 0
        self._in_frame: set[int] = set()
        """The appends that still need the bytes of the request."""

    def appended(self, index: int, appended: Appended) -> None:
        """Entry `index` was appended: it is done, or waits to be written, committed or replicated."""
        if appended.is_done:
            self._count(index, appended.info)
            self._answers[index] = _success(appended.info)
            return
        self._infos[index] = appended.info
        self._remaining += 1
        if appended.is_written:
            self._count(index, appended.info)
        else:
            self._unwritten.add(index)
            self._hold_records(index, appended)

    def waits_for_replicas(self, index: int) -> None:
        """Entry `index` was appended before the request came here, and waits to be replicated."""
        self._answers[index] = None
        self._remaining += 1

    def _count(self, index: int, info: LogAppendInfo) -> None:
        """The records of entry `index` are in the log, whether or not other replicas have them."""
        traffic = self._traffic.get(self._request.entries[index].topic)
        if traffic is not None:  # else the topic was deleted meanwhile
            traffic.messages_in += info.last_offset - info.first_offset + 1
            traffic.bytes_in += info.size

    def _failed(self, index: int, error: StrandlineError) -> ProduceAnswer:
        answer = failure_of(error)
        self._exchange.count_error(answer.error_code)
        entry = self._request.entries[index]
        traffic = self._traffic.get(entry.topic)
        if traffic is not None:
            if answer.error_code in TOO_LARGE and entry.records is not None:
                traffic.bytes_rejected += len(entry.records)
            count_failure(answer, traffic)
        return answer

    def _hold_records(self, index: int, appended: Appended) -> None:
        """Count the memory that an append keeps until it is written: a copy, or the request itself."""
        if appended.is_copied:
            self._uncommitted_bytes += appended.info.size
            return
        self._in_frame.add(index)
        if not self._exchange.holds_frame:
            self._exchange.hold_copy(appended.info.size)

    def refused(self, index: int, error: StrandlineError) -> None:
        """Entry `index` was not appended."""
        self._answers[index] = self._failed(index, error)

    def written(self, index: int) -> None:
        """An append is in the log of this broker, and waits for others."""
        if index in self._unwritten:
            self._count(index, self._infos[index])
        self._no_longer_unwritten(index)
        self._wait_on()

    def done(self, index: int, error: StrandlineError | None) -> None:
        """An append that waited is durable, or failed."""
        if self._is_answered:
            return
        if error is not None:
            self._answers[index] = self._failed(index, error)
        elif index < len(self._exchange.begun):
            self._answers[index] = self._exchange.begun[index]
        else:
            self._answers[index] = _success(self._infos[index])
            if index in self._unwritten:
                self._count(index, self._infos[index])
        self._no_longer_unwritten(index)
        self._remaining -= 1
        self._wait_on()

    def _no_longer_unwritten(self, index: int) -> None:
        """The request's bytes go back as soon as no log needs them: other batches may wait long for their commit."""
        self._unwritten.discard(index)
        if index in self._in_frame:
            self._in_frame.discard(index)
            if not self._in_frame:
                self._exchange.release_frame()

    def everything_started(self) -> None:
        """Every entry was tried; answer unless some wait."""
        if self._uncommitted_bytes:
            if not self._in_frame:
                self._exchange.release_frame()
            self._exchange.hold_uncommitted(self._uncommitted_bytes)
        self._starting = False
        self._wait_on()

    def _wait_on(self) -> None:
        """Answer if no append is pending. The request's timeout starts when all batches are written, as in Kafka: until
        then the log needs the request's bytes."""
        if self._starting or self._is_answered:
            return
        if self._remaining == 0:
            self._answer()
        elif not self._unwritten and self._deadline is None and self._request.acks == ACKS_ALL:
            self._deadline = self._deadlines.call_within(self._request.timeout_ms / 1000, self.expired)

    def expired(self) -> None:
        """The request timed out. Batches that were written stay written, but are not known to be replicated."""
        for index, answer in enumerate(self._answers):
            if answer is None:
                self._answers[index] = self._failed(
                    index, RequestTimedOut(not_replicated_within(self._request.timeout_ms))
                )
        self._answer()

    def _answer(self) -> None:
        self._is_answered = True
        if self._deadline is not None:
            self._deadline.cancel()
        exchange, request = self._exchange, self._request
        answers = [answer if answer is not None else ProduceAnswer() for answer in self._answers]
        if request.acks != 0:
            exchange.respond(
                [write_produce_response(exchange.correlation_id, exchange.api_version, request.entries, answers)]
            )
        elif any(answer.error_code for answer in answers):
            # Without a response, closing is the only way to make the producer refresh its metadata.
            exchange.abort(f"a Produce with acks=0 failed: {_first_message(answers)}")
        else:
            exchange.respond_nothing()


def _first_message(answers: list[ProduceAnswer]) -> str:
    return next((answer.error_message or f"error {answer.error_code}" for answer in answers if answer.error_code), "")


def _success(info: LogAppendInfo) -> ProduceAnswer:
    return ProduceAnswer(0, info.first_offset, info.log_append_time_ms, info.log_start_offset)
