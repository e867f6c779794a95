"""Produce requests as a test describes them, for whatever topics."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from strandline.records import Codec, Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.registry import encode_request
from tests.moments import T0
from tests.wirelevel.raw import LENGTH
from tests.wirelevel.transactional import RawTransactionalProducer

FIRST_FLEXIBLE = 9

# Producers of batches: none, against the rules also in a transaction; the one of a transaction, in it or against the
# rules outside of it.
NOBODY, NOBODY_IN_TRANSACTION, TRANSACTION, OUTSIDE = -1, -2, 100, 101

# Flaws of one byte: where it is, and what is wrong with it.
_WRONG_BYTES = {"checksum": (-1, 1), "offset": (7, 1), "length": (8, 0xFF), "magic": (16, 3)}


class Batch(NamedTuple):
    """Records for one partition."""

    amount: int = 1
    codec: Codec = Codec.NONE
    producer: int = -1
    """An id, or one of NOBODY, NOBODY_IN_TRANSACTION, TRANSACTION and OUTSIDE."""
    sequence: int = 0
    flaw: str = ""
    epoch: int = 0
    size: int = 100

    def records(self, transactional: RawTransactionalProducer | None) -> bytes | None:
        """As they are sent. None: the field is null."""
        timestamp = 2 * T0 if self.flaw == "future" else T0
        records = [Record(index, timestamp, b"key", b"v" * self.size) for index in range(self.amount)]
        batch = build_batch(records, codec=self.codec, is_transactional=self.producer == NOBODY_IN_TRANSACTION)
        if self.producer >= 0:
            producer_id, epoch = self.producer, self.epoch
            if transactional is not None and self.producer in (TRANSACTION, OUTSIDE):
                producer_id, epoch = transactional.producer_id, transactional.epoch
            batch = build_batch(
                records,
                codec=self.codec,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self.sequence,
                is_transactional=self.producer == TRANSACTION,
            )
        if self.flaw in _WRONG_BYTES:
            position, bits = _WRONG_BYTES[self.flaw]
            batch[position] ^= bits
        match self.flaw:
            case "cut":
                return bytes(batch[:-5])
            case "two":
                return bytes(2 * batch)
            case "header":
                return bytes(batch[:40])
            case "null":
                return None
        return bytes(batch)


class Topics(dict[str, tuple[str, UUID]]):
    """The topics of one side by a letter: `a` and `b` are classic, `d` is diskless, `x` does not exist."""

    def letter_of(self, name: str, topic_id: UUID) -> str:
        return next(letter for letter, known in self.items() if name == known[0] or topic_id == known[1])


class Step(NamedTuple):
    """One request, for whatever topics."""

    version: int
    acks: int
    client_id: str
    batches: tuple[tuple[str, int, Batch], ...]
    """Each with the letter of its topic and its partition."""
    tags: bytes = b"\x00"
    """How the request ends in flexible versions."""
    apart: bool = False
    """Whether each batch gets a topic element of its own."""

    def frame(
        self, topics: Topics, correlation_id: int, transactional: RawTransactionalProducer | None = None
    ) -> bytes:
        request = ProduceRequest(
            transactional_id=None if transactional is None else transactional.transactional_id,
            acks=self.acks,
            timeout_ms=5000,
        )
        before = ""
        for letter, partition, batch in self.batches:
            if letter != before or self.apart:
                name, topic_id = topics[letter]
                request.topic_data.append(TopicProduceData(name=name, topic_id=topic_id, partition_data=[]))
            before = letter
            data = PartitionProduceData(index=partition, records=batch.records(transactional))
            request.topic_data[-1].partition_data.append(data)
        frame = encode_request(ApiKey.PRODUCE, self.version, correlation_id, self.client_id, request)
        if self.version >= FIRST_FLEXIBLE:
            frame = frame[:-1] + self.tags
        return LENGTH.pack(len(frame)) + frame
