"""Applies the answers of the control plane: offsets in the batches, blocks for readers, results for producers.

Offsets are stamped into the uploaded buffers in place: consumers at the end of the log are sent the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.controlplane import AbortedRange, BatchToCommit, CommittedBatch, FileToCommit, Refusal
from strandline.diskless.values import CommittedBlock, DisklessAppend, DisklessAppended
from strandline.diskless.writer.gathering import GatheredFile
from strandline.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaStorageError,
    NotLeaderOrFollower,
    OutOfOrderSequence,
    StrandlineError,
    TransactionCoordinatorFenced,
)
from strandline.model import Offset
from strandline.records import stamp, stamp_log_append_time

_ERRORS: Final[dict[Refusal, tuple[type[StrandlineError], str]]] = {
    Refusal.UNKNOWN_LOG: (NotLeaderOrFollower, "The control plane does not know this partition (yet)."),
    Refusal.OUT_OF_ORDER_SEQUENCE: (OutOfOrderSequence, "The sequence number does not follow the one before."),
    Refusal.INVALID_PRODUCER_EPOCH: (InvalidProducerEpoch, "The producer epoch is older than the one known."),
    Refusal.INVALID_TXN_STATE: (
        InvalidTxnState,
        "The batch is outside of the transaction that its producer has open, or of one that has ended.",
    ),
    Refusal.COORDINATOR_FENCED: (
        TransactionCoordinatorFenced,
        "The marker comes from a transaction coordinator that was replaced.",
    ),
    Refusal.STALE_FILE: (
        KafkaStorageError,
        "The object with the batch was marked as an orphan before it was committed. Send the batch again.",
    ),
}
# The producer may send these batches again unchanged, so its later batches have to wait for them.
_LOSSES: Final = frozenset({Refusal.UNKNOWN_LOG, Refusal.STALE_FILE})


class Claim:
    """One object in a commit: the batches to commit, then their results."""

    __slots__ = ("file", "lost", "placed", "refused", "results")

    def __init__(self, file: GatheredFile, placed: Sequence[tuple[int, int]]) -> None:
        self.file = file
        self.placed = placed
        # Set when the claim is settled.
        self.results: list[DisklessAppended | StrandlineError] = []
        """In the order of `placed`."""
        self.lost: list[DisklessAppend] = []
        self.refused = 0

    def to_commit(self, broker_id: int) -> FileToCommit:
        """The request to the control plane."""
        batches = self.file.batches
        return FileToCommit(
            object_key=self.file.key,
            size=self.file.size,
            broker_id=broker_id,
            batches=tuple([_batch_to_commit(batches[index], position) for index, position in self.placed]),
        )


def _batch_to_commit(batch: DisklessAppend, byte_offset: int) -> BatchToCommit:
    header = batch.header
    return BatchToCommit(
        batch.partition,
        byte_offset,
        len(batch.buffer),
        header.last_offset_delta + 1,
        header.max_timestamp,
        batch.timestamp_type,
        batch.leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        batch.marker,
        batch.verification,
    )


class Settlement:
    """The new blocks for readers after one commit, in the order of the objects."""

    def __init__(self) -> None:
        self.blocks: list[CommittedBlock] = []
        self.log_start_offsets: list[Offset] = []

    def settle(self, claim: Claim, answers: Sequence[CommittedBatch]) -> None:
        """Stamp the accepted batches of one object, and set the results of all of them."""
        batches, results = claim.file.batches, claim.results
        run = _AcceptedRun()
        for (index, position), answer in zip(claim.placed, answers, strict=True):
            batch = batches[index]
            if answer.refusal is not None:
                self._refuse(claim, batch, answer, answer.refusal)
                continue
            results.append(DisklessAppended(answer.base_offset, answer.log_append_time_ms, answer.log_start_offset))
            if answer.is_duplicate:
                continue
            stamp(batch.buffer, 0, answer.base_offset, answer.leader_epoch)
            if batch.timestamp_type:
                stamp_log_append_time(batch.buffer, 0, answer.log_append_time_ms)
            if not run.continues_with(batch, position, answer.base_offset):
                self._close(run)
                run = _AcceptedRun()
            run.add(batch, position, answer)
        self._close(run)

    def _refuse(self, claim: Claim, batch: DisklessAppend, answer: CommittedBatch, refusal: Refusal) -> None:
        error, sentence = _ERRORS.get(refusal, (KafkaStorageError, f"The control plane refused: {refusal.name}."))
        claim.results.append(error(answer.message or sentence))
        claim.refused += 1
        if refusal in _LOSSES:
            claim.lost.append(batch)

    def _close(self, run: _AcceptedRun) -> None:
        if run.last is not None:
            self.blocks.append(run.block(run.last))
            self.log_start_offsets.append(run.last.log_start_offset)


class _AcceptedRun:
    """Accepted batches that are adjacent and have dense offsets: one row of the control plane."""

    __slots__ = ("aborted", "batches", "byte_end", "first_offset", "last", "max_timestamp", "next_offset")

    def __init__(self) -> None:
        self.batches: list[DisklessAppend] = []
        self.first_offset = 0
        self.next_offset = 0
        self.byte_end = 0
        self.max_timestamp = -1
        self.last: CommittedBatch | None = None
        """The newest answer, whose offsets are those of the log behind the row."""
        self.aborted: list[AbortedRange] = []

    def continues_with(self, batch: DisklessAppend, position: int, base_offset: Offset) -> bool:
        """Whether a batch belongs to the same row."""
        if not self.batches or position != self.byte_end or base_offset != self.next_offset:
            return False
        last = self.batches[-1]
        return (
            batch.partition == last.partition
            and batch.timestamp_type == last.timestamp_type
            and batch.leader_epoch == last.leader_epoch
        )

    def add(self, batch: DisklessAppend, position: int, answer: CommittedBatch) -> None:
        """Add a batch."""
        header = batch.header
        if not self.batches:
            self.first_offset = answer.base_offset
        timestamp = answer.log_append_time_ms if batch.timestamp_type else header.max_timestamp
        self.batches.append(batch)
        self.byte_end = position + len(batch.buffer)
        self.next_offset = answer.base_offset + header.last_offset_delta + 1
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.last = answer
        if answer.aborted_from >= 0:
            unstable = answer.first_unstable_offset
            stable = unstable if unstable >= 0 else answer.base_offset + 1
            self.aborted.append(AbortedRange(header.producer_id, answer.aborted_from, answer.base_offset, stable))

    def block(self, last: CommittedBatch) -> CommittedBlock:
        """The row as a block for readers, with its newest answer."""
        return CommittedBlock(
            self.batches[0].partition,
            self.first_offset,
            self.next_offset - 1,
            tuple([batch.buffer for batch in self.batches]),
            self.max_timestamp,
            last.first_unstable_offset,
            last.last_aborted_offset,
            tuple(self.aborted),
        )
