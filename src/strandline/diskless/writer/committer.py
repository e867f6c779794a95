"""Commits groups of WAL objects to the control plane, and passes the result to readers and producers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

from strandline.clock import Chance, Clock
from strandline.controlplane import BatchCommits, CommittedBatch, FileToCommit
from strandline.crash import crash_point
from strandline.diskless.values import CommitListener, DisklessAppend
from strandline.diskless.writer.gathering import GatheredFile
from strandline.diskless.writer.sequence_gaps import SequenceGaps
from strandline.diskless.writer.settling import Claim, Settlement
from strandline.diskless.writer.status import WriterTotals
from strandline.errors import KafkaStorageError, OutOfOrderSequence, RequestTimedOut, StrandlineError
from strandline.sql import SqlError, TransactionConflict

logger = logging.getLogger(__name__)

# Pauses between two attempts of a commit, in milliseconds.
_FIRST_PAUSE: Final = 5
_LONGEST_PAUSE: Final = 1000

# A process that was suspended must not commit this many seconds after the deadline: its objects may have been deleted
# as orphans.
_LATEST_CALL: Final = 15.0

# Rotates, and returns the number of the newest object: every batch that has arrived is in this one or an earlier one.
Seal: TypeAlias = Callable[[], int]


class CommitFailed(Exception):
    """The commit failed, or its result is not known."""

    def __init__(self, message: str, *, may_have_happened: bool, is_passing: bool = False) -> None:
        """`is_passing`: the database would take it at another time."""
        super().__init__(message)
        self.may_have_happened, self.is_passing = may_have_happened, is_passing


class CommitCalls:
    """Calls to commit objects, repeated until one has an answer or the deadline is over."""

    def __init__(self, commits: BatchCommits, *, clock: Clock, chance: Chance) -> None:
        self._commits = commits
        self._clock = clock
        self._chance = chance

    async def commit(self, files: Sequence[FileToCommit], *, deadline: float) -> Sequence[Sequence[CommittedBatch]]:
        """The answers of the control plane. Raises CommitFailed.

        Repeats the call until `deadline`; if that has just passed, calls once. A repeated call is harmless: objects
        that an earlier call committed get the answers of that call.
        """
        may_have_happened = False
        pause = _FIRST_PAUSE
        said = ""
        while True:
            if self._clock.monotonic() > deadline + _LATEST_CALL:
                raise CommitFailed("Too much time has passed since its upload.", may_have_happened=may_have_happened)
            crash_point("diskless.writer.before_commit")
            try:
                answers = await self._commits.commit_files(files)
            except SqlError as error:
                may_have_happened |= error.retriable and not isinstance(error, TransactionConflict)
                if not error.retriable or self._clock.monotonic() >= deadline:
                    logger.warning("%d WAL objects from %s on were not committed: %s", *_described(files), error)
                    raise CommitFailed(
                        str(error), may_have_happened=may_have_happened, is_passing=error.retriable
                    ) from error
                if str(error) != said:  # once, not with each attempt
                    logger.info("the commit of %d WAL objects from %s on is repeated: %s", *_described(files), error)
                said = str(error)
            else:
                crash_point("diskless.writer.after_commit")
                return answers
            # A random pause: brokers whose transactions collided must not collide again.
            await self._clock.sleep((pause + self._chance.below(pause)) / 1000)
            pause = min(2 * pause, _LONGEST_PAUSE)


class Committer:
    """Commits groups, one after the other, in the order of rotation."""

    def __init__(
        self,
        commits: CommitCalls,
        listener: CommitListener,
        totals: WriterTotals,
        *,
        broker_id: int,
        patience: float,
        seal: Seal,
        discard: Callable[[Collection[str]], None],
    ) -> None:
        self._commits = commits
        self._listener = listener
        self._totals = totals
        self._broker_id = broker_id
        self._patience = patience
        self._seal = seal
        self._discard = discard
        self._gaps = SequenceGaps()

    async def commit(self, group: Sequence[GatheredFile]) -> None:
        """Commit the files of a group in one call and answer all their batches. Raises only CancelledError."""
        claims = [self._claim(file) for file in group]
        asked = [claim for claim in claims if claim.placed]
        self._discard([claim.file.key for claim in claims if not claim.placed])
        if asked:
            files = [claim.to_commit(self._broker_id) for claim in asked]
            try:
                answers = await self._commits.commit(files, deadline=group[0].uploaded_at + self._patience)
                self._settle(asked, answers)
            except CommitFailed as failure:
                self._failed(asked, failure)
            except Exception as error:
                logger.exception("%d WAL objects may be committed, but their batches could not be settled", len(asked))
                self._failed(asked, CommitFailed(str(error), may_have_happened=True))
        self._gaps.passed(group[-1].number)

    def lost(self, file: GatheredFile, batches: Sequence[DisklessAppend]) -> None:
        """Note that batches of a file will not be committed. Call it before their producers get the error."""
        if any(batch.header.has_producer_id for batch in batches):
            newest = self._seal()
            for batch in batches:
                self._gaps.lost(batch, number=file.number, newest=newest)

    def _claim(self, file: GatheredFile) -> Claim:
        """The batches of a file to commit: nearly always all."""
        if not self._gaps:
            return Claim(file, file.placed)
        placed = []
        for index, position in file.placed:
            if self._gaps.stops(file.batches[index], number=file.number):
                self._totals.batches_refused += 1
                file.answer(index, OutOfOrderSequence("An earlier batch of this producer was not written."))
            else:
                placed.append((index, position))
        return Claim(file, placed)

    def _settle(self, asked: Sequence[Claim], answers: Sequence[Sequence[CommittedBatch]]) -> None:
        settlement = Settlement()
        for claim, answers_of_file in zip(asked, answers, strict=True):
            settlement.settle(claim, answers_of_file)
            self.lost(claim.file, claim.lost)
        try:
            self._listener.committed(
                settlement.blocks,
                log_start_offsets=settlement.log_start_offsets,
                object_key=asked[-1].file.key,
            )
        except Exception:  # the batches are committed even if a reader fails
            logger.exception("readers could not be notified of a commit")
        crash_point("diskless.writer.before_answer")
        for claim in asked:
            self._answer(claim)

    def _answer(self, claim: Claim) -> None:
        file, totals = claim.file, self._totals
        for (index, _), result in zip(claim.placed, claim.results, strict=True):
            file.answer(index, result)
        totals.batches += len(claim.placed) - claim.refused
        totals.batches_refused += claim.refused
        if claim.refused < len(claim.placed):
            totals.files += 1
            totals.bytes += file.size

    def _failed(self, asked: Sequence[Claim], failure: CommitFailed) -> None:
        error: StrandlineError
        if failure.may_have_happened:
            error = RequestTimedOut(f"It is not known whether the batch was committed: {failure}")
        else:
            kind = RequestTimedOut if failure.is_passing else KafkaStorageError
            error = kind(f"The batch was not committed: {failure}")
            self._discard([claim.file.key for claim in asked])
        for claim in asked:
            self._totals.commits_failed += 1
            self.lost(claim.file, [claim.file.batches[index] for index, _ in claim.placed])
            self._totals.batches_failed += claim.file.answer_rest(error)


def _described(files: Sequence[FileToCommit]) -> tuple[int, str]:
    return len(files), files[0].object_key
