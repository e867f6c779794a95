"""A transactional producer of which both brokers have to think the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from differential.places import Place
from differential.steps import Step
from strandline.wire.api import ApiKey
from strandline.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from strandline.wire.messages.end_txn import EndTxnRequest
from strandline.wire.messages.init_producer_id import InitProducerIdRequest

TIMEOUT_MS: Final = 7_200_000
"""Longer than a run: no transaction ends by itself."""
LAST_WITH_VERIFICATION: Final = 11
"""Produce versions from 12 on add their partitions to the transaction themselves."""
NOT_YET: Final = frozenset({14, 15, 16, 51})
"""The coordinator loads, or writes the markers of the transaction before."""


@dataclass(slots=True)
class Transactional:
    """What the producer knows."""

    transactional_id: str
    is_new: bool
    """Of `transaction.version` 2: each transaction has an epoch of its own."""
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[Place, int] = field(default_factory=dict)
    """The next one of each partition."""
    added: set[Place] = field(default_factory=set)
    written: set[Place] = field(default_factory=set)
    """Partitions of the transaction that is open."""

    @property
    def is_open(self) -> bool:
        return bool(self.added or self.written)

    @property
    def identity(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    @property
    def produce_versions(self) -> tuple[int, ...]:
        return (12, 13) if self.is_new else (*range(3, LAST_WITH_VERIFICATION + 1),)

    def init(self) -> Step:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        return self._step(ApiKey.INIT_PRODUCER_ID, 5, request, sorted(self.written))

    def add(self, places: Sequence[Place], *, epoch: int | None = None) -> Step:
        """AddPartitionsToTxn as clients send it."""
        topics = [
            AddPartitionsToTxnTopic(name=name, partitions=[place.partition for place in found])
            for name, found in groupby(sorted(places), key=lambda place: place.topic)
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch if epoch is None else epoch,
            v3_and_below_topics=topics,
        )
        return self._step(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, places)

    def end(self, *, commit: bool, epoch: int | None = None) -> Step:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=commit,
        )
        return self._step(ApiKey.END_TXN, 5 if self.is_new else 4, request, sorted(self.written))

    def _step(self, api: ApiKey, version: int, request: Any, places: Sequence[Place]) -> Step:
        return Step(
            api=api,
            version=version,
            message=request,
            places=tuple(places),
            changes=tuple(places),
            wire="transactions",
            retried=NOT_YET,
        )

    # What answers say

    def initialised(self, answer: Any) -> None:
        if answer is not None and answer.error_code == 0:
            self._begin_anew(answer.producer_id, answer.producer_epoch)
            self.added.clear()
            self.written.clear()

    def took(self, place: Place, records: int) -> None:
        """A batch was accepted."""
        self.sequences[place] = self.sequences.get(place, 0) + records
        self.written.add(place)

    def ended(self, answer: Any) -> None:
        if answer is not None and answer.error_code == 0:
            self.added.clear()
            self.written.clear()
            if self.is_new:
                self._begin_anew(answer.producer_id, answer.producer_epoch)

    def _begin_anew(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != self.identity:
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch
