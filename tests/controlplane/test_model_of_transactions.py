"""Open transactions, last stable offset and aborted ranges: the control plane, a classic log and a list agree.

Any sequence of batches and markers, in any commits, is judged alike by all three.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane import AbortedRange, CommittedBatch, Refusal, SqlControlPlane
from strandline.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    StrandlineError,
    TransactionCoordinatorFenced,
)
from strandline.log import AppendOrigin
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.controlplane.making import A, HandSetClock, batch, marker, wal
from tests.log.harness import LogHarness
from tests.log.harness import batch as real_batch
from tests.log.harness import marker as real_marker
from tests.postgres import start_postgres

REFUSALS = {
    InvalidProducerEpoch: Refusal.INVALID_PRODUCER_EPOCH,
    OutOfOrderSequence: Refusal.OUT_OF_ORDER_SEQUENCE,
    InvalidTxnState: Refusal.INVALID_TXN_STATE,
    TransactionCoordinatorFenced: Refusal.COORDINATOR_FENCED,
}


class Data(NamedTuple):
    """A batch. `slip` is how far its sequence is from the next one."""

    producer_id: int
    epoch: int
    slip: int
    records: int
    is_transactional: bool


class End(NamedTuple):
    """A marker."""

    producer_id: int
    epoch: int
    is_abort: bool
    coordinator: int
    version: int


ids, epochs = st.integers(1, 3), st.sampled_from((0, 0, 0, 1, 2))
datas = st.builds(
    Data, ids, epochs, st.sampled_from((0, 0, 0, 0, -1, 1)), st.integers(1, 3), st.sampled_from((1, 1, 0))
)
ends = st.builds(End, ids, epochs, st.booleans(), st.sampled_from((1, 1, 0, 2)), st.sampled_from((0, 0, 2)))
histories = st.lists(st.lists(datas | datas | ends, min_size=1, max_size=5), max_size=8)
numbers = itertools.count()
"""Of files: a database outlives an example."""


@dataclass
class ListedLog:
    """What happened, as lists: the answers are looked up in them each time."""

    end: int = 0
    happened: list[tuple[int, Data | End, int]] = field(default_factory=list)
    """First offset, what, and the sequence of a batch."""

    def of(self, producer_id: int) -> list[tuple[int, Data | End, int]]:
        return [one for one in self.happened if one[1].producer_id == producer_id]

    def epoch_of(self, producer_id: int) -> int:
        return max((one.epoch for _, one, _ in self.of(producer_id)), default=-1)

    def next_sequence(self, producer_id: int, epoch: int) -> int:
        following = 0
        for _, one, sequence in self.of(producer_id):
            if one.epoch == epoch and isinstance(one, Data):
                following = sequence + one.records
        return following

    def opened(self, producer_id: int) -> int | None:
        """Where the open transaction of a producer begins."""
        first = None
        for offset, one, _ in self.of(producer_id):
            if isinstance(one, End):
                first = None
            elif one.is_transactional and first is None:
                first = offset
        return first

    @property
    def first_unstable(self) -> int:
        begun = [self.opened(producer_id) for producer_id in (1, 2, 3)]
        return min((first for first in begun if first is not None), default=-1)

    def judge(self, item: Data, sequence: int) -> Refusal | int | None:
        """A refusal, the offset of a duplicate, or None: it is taken."""
        known = self.epoch_of(item.producer_id)
        sent = [
            (offset, one, first)
            for offset, one, first in self.of(item.producer_id)
            if isinstance(one, Data) and one.epoch == item.epoch == known
        ]
        for offset, one, first in sent[-5:]:
            if (first, one.records) == (sequence, item.records):
                return offset
        if item.epoch < known:
            return Refusal.INVALID_PRODUCER_EPOCH
        is_first = item.epoch > known
        following = self.next_sequence(item.producer_id, item.epoch)
        if (sequence if is_first and known >= 0 else 0) or (not is_first and sequence != following):
            return Refusal.OUT_OF_ORDER_SEQUENCE
        if not item.is_transactional and self.opened(item.producer_id) is not None:
            return Refusal.INVALID_TXN_STATE
        return None

    def judge_end(self, end: End) -> Refusal | None:
        known = self.epoch_of(end.producer_id)
        if end.epoch < known or (end.version == 2 and end.epoch == known):
            return Refusal.INVALID_PRODUCER_EPOCH
        coordinators = [one.coordinator for _, one, _ in self.of(end.producer_id) if isinstance(one, End)]
        return Refusal.COORDINATOR_FENCED if end.coordinator < max(coordinators, default=-1) else None

    def take(self, item: Data | End, sequence: int) -> int:
        offset = self.end
        self.happened.append((offset, item, sequence))
        self.end += item.records if isinstance(item, Data) else 1
        return offset


class ThreeLogs:
    """One history in three logs."""

    def __init__(self, root: Path, plane: SqlControlPlane) -> None:
        self.plane = plane
        self.listed = ListedLog()
        self.classic = LogHarness(root)
        self.classic.create()
        self.aborted: list[AbortedRange] = []

    async def commit(self, items: Sequence[Data | End]) -> None:
        """One file, whose batches are judged by the classic log and by the list before it is committed."""
        expected: list[tuple[object, ...]] = []
        batches = []
        for item in items:
            sequence = -1
            if isinstance(item, Data):
                following = self.listed.next_sequence(item.producer_id, item.epoch)
                sequence = max(following + item.slip * item.records, 0)
                producer = (item.producer_id, item.epoch, sequence)
                batches.append(batch(A, item.records, producer=producer, is_transactional=item.is_transactional))
            else:
                batches.append(
                    marker(
                        A,
                        (item.producer_id, item.epoch),
                        is_abort=item.is_abort,
                        coordinator=item.coordinator,
                        version=item.version,
                    )
                )
            expected.append(self._in_list(item, sequence))
            assert expected[-1][:2] == self._in_classic(item, sequence), item
        (answers,) = await self.plane.commits.commit_files([wal(f"f{next(numbers)}", *batches)])
        assert list(map(_told, answers)) == expected

    def _in_list(self, item: Data | End, sequence: int) -> tuple[object, ...]:
        listed = self.listed
        verdict = listed.judge(item, sequence) if isinstance(item, Data) else listed.judge_end(item)
        if isinstance(verdict, Refusal):
            return verdict, -1, None
        if verdict is not None:
            return None, verdict, None
        began = listed.opened(item.producer_id)
        offset = listed.take(item, sequence)
        if isinstance(item, End) and item.is_abort and began is not None:
            stable = listed.first_unstable if listed.first_unstable >= 0 else offset + 1
            self.aborted.append(AbortedRange(item.producer_id, began, offset, stable))
        return None, offset, listed.first_unstable

    def _in_classic(self, item: Data | End, sequence: int) -> tuple[Refusal | None, int]:
        try:
            if isinstance(item, Data):
                records = real_batch(
                    item.records,
                    producer_id=item.producer_id,
                    producer_epoch=item.epoch,
                    sequence=sequence,
                    is_transactional=item.is_transactional,
                )
                return None, self.classic.append(records).first_offset
            records = real_marker(
                item.producer_id, commits=not item.is_abort, epoch=item.epoch, coordinator_epoch=item.coordinator
            )
            log = self.classic.log
            info = log.append(
                records, leader_epoch=0, origin=AppendOrigin.COORDINATOR, transaction_version=item.version
            )
            log.update_high_watermark(log.log_end_offset)
        except StrandlineError as error:
            return REFUSALS[type(error)], -1
        return None, info.first_offset

    async def check(self) -> None:
        """The three agree about everything that readers and operators see."""
        log = (await self.plane.reads.logs([A]))[A]
        classic = self.classic.log
        assert log.high_watermark == classic.high_watermark == self.listed.end
        assert log.first_unstable_offset == self.listed.first_unstable
        assert log.last_stable_offset == classic.last_stable_offset
        found = await self.plane.reads.aborted_transactions(A, from_offset=0, limit=10_000)
        assert list(found.ranges) == self.aborted
        assert list(found.ranges) == [
            AbortedRange(*entry) for segment in classic.segments for entry in segment.txn_index
        ]
        assert log.last_aborted_offset == (self.aborted[-1].last_offset if self.aborted else -1)
        by_id = {one.producer_id: one for one in classic.active_producers()}
        for one in await self.plane.producers.producers(A):
            other = by_id.pop(one.producer_id)
            assert (one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.txn_first_offset) == (
                other.producer_epoch,
                other.last_sequence,
                other.coordinator_epoch,
                other.current_txn_start_offset,
            )
        assert not by_id


def _told(answer: CommittedBatch) -> tuple[object, ...]:
    """Refusal, offset, and the first open transaction, which duplicates and refused batches do not tell."""
    is_new = answer.refusal is None and not answer.is_duplicate
    return answer.refusal, answer.base_offset, answer.first_unstable_offset if is_new else None


async def _agree(url: str, history: Sequence[Sequence[Data | End]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        async with open_store(url) as store:
            plane = SqlControlPlane(store, clock=VirtualClock(), time=HandSetClock())
            await plane.lifecycle.delete_topics([A.topic_id])
            await plane.lifecycle.create_logs([A])
            logs = ThreeLogs(Path(root), plane)
            for items in history:
                await logs.commit(items)
                await logs.check()
            logs.classic.log.close()


@given(histories)
def test_three_logs_agree(history: list[list[Data | End]]) -> None:
    asyncio.run(_agree("sqlite:///:memory:", history))


@pytest.fixture(scope="module")
def postgres() -> str:
    return start_postgres().new_database()


@given(history=histories)
def test_three_logs_agree_on_postgresql(postgres: str, history: list[list[Data | End]]) -> None:
    asyncio.run(_agree(postgres, history))
