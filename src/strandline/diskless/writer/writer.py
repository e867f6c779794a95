"""The writer: takes batches of any partition, puts them into shared WAL objects and commits these to the control plane.

Gather, rotate, upload, commit, stamp, notify the readers, answer the producers. Uploads run in parallel, commits one
after the other in the order of rotation, so that several requests of one producer make progress at the same time and
keep their order. `rotation`, `commit_queue` and `sequence_gaps` decide; `uploads` and `committer` act.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine
from dataclasses import replace
from typing import Any

from strandline.clock import Chance, Clock, Ids
from strandline.controlplane import BatchCommits
from strandline.diskless.values import AppendDone, CommitListener, DisklessAppend
from strandline.diskless.writer.commit_queue import CommitQueue
from strandline.diskless.writer.committer import CommitCalls, Committer
from strandline.diskless.writer.gathering import GatheredFile
from strandline.diskless.writer.rotation import RotationRules, WriterLimits
from strandline.diskless.writer.status import WriterStatus, WriterTotals
from strandline.diskless.writer.uploads import Uploads
from strandline.diskless.writer.windows import SendWindows
from strandline.errors import KafkaStorageError, RequestTimedOut, StrandlineError
from strandline.objects import ObjectStore

logger = logging.getLogger(__name__)


class WalWriter:
    """Writes the batches of one broker to WAL objects, on its event loop. Call `close` in the end.

    A batch that cannot be written gets one of these errors. Clients retry all of them, except InvalidProducerEpoch:

    - KafkaStorageError: the batch was certainly not committed, because its object was not uploaded or was marked as an
      orphan, or because the writer is closed;
    - RequestTimedOut: too many bytes are pending already, or it is not known whether the batch was committed;
    - UnknownTopicOrPartition: the control plane has no log for it;
    - OutOfOrderSequence, InvalidProducerEpoch: as in Kafka.
    """

    def __init__(
        self,
        store: ObjectStore,
        commits: BatchCommits,
        listener: CommitListener,
        limits: WriterLimits,
        *,
        broker_id: int,
        cluster_id: str,
        clock: Clock,
        ids: Ids,
        chance: Chance,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._rules = RotationRules(limits)
        self._totals = WriterTotals()
        self._uploads = Uploads(store, limits, clock=clock, ids=ids, broker_id=broker_id, cluster_id=cluster_id)
        self._committer = Committer(
            CommitCalls(commits, clock=clock, chance=chance),
            listener,
            self._totals,
            broker_id=broker_id,
            patience=limits.patience,
            seal=self._seal,
            discard=self._discard,
        )
        self._order: CommitQueue[GatheredFile] = CommitQueue(max_batches=limits.max_batches)
        self._gathering = GatheredFile()
        self._windows = SendWindows()
        self._rotations = 0
        self._last_created_ms = 0
        self._pending_bytes = 0
        self._is_overloaded = False
        self._is_closed = False
        self._is_check_scheduled = False
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    # Gathering

    def append(self, batch: DisklessAppend, done: AppendDone) -> None:
        """Take a batch; `done` is called in a later turn of the event loop. Cheap: the work is done per object."""
        size = len(batch.buffer)
        if self._is_closed or self._is_overloaded or self._pending_bytes + size > self._limits.max_pending_bytes:
            refusal = self._refusal()
            if refusal is not None:
                self._loop.call_soon(done, refusal)
                return
        file = self._gathering
        if self._rules.must_rotate_before(size, byte_count=file.byte_count, batch_count=len(file.batches)):
            self._rotate()
            file = self._gathering
        if not file.batches:
            file.since = self._clock.monotonic()
        file.add(batch, done)
        self._windows.sent(batch)
        self._pending_bytes += size
        if not self._is_check_scheduled:
            # Not now: the other batches of this request, and of requests that have arrived, go into the same object.
            self._is_check_scheduled = True
            self._loop.call_soon(self._check_rotation)

    def _refusal(self) -> StrandlineError | None:
        """Why the batch is refused; None if it is alone, and exceeds the limit by itself."""
        if self._is_closed:
            return KafkaStorageError("This broker is stopping; send the batch to another one.")
        if self._pending_bytes == 0:
            return None
        self._is_overloaded = True
        self._totals.batches_over_limit += 1
        return RequestTimedOut(
            f"{self._pending_bytes} bytes of diskless batches wait to be uploaded and committed; the limit is "
            f"{self._limits.max_pending_bytes}. Nothing of this batch was written; send it again."
        )

    def _check_rotation(self) -> None:
        """Rotate if it is due. Called whenever that may have changed."""
        self._is_check_scheduled = False
        now = self._clock.monotonic()
        gathered, pipe, usual = self._gathering.gathered(now), self._order.pipe, self._uploads.usual_seconds
        if self._rules.is_due(gathered, pipe, upload_seconds=usual) or (
            self._rules.is_worth_an_upload(gathered, pipe) and self._windows.are_used_up
        ):
            self._rotate()
        elif gathered.batch_count and (left := self._rules.seconds_left(gathered, pipe, upload_seconds=usual)) > 0:
            self._check_at(now + left)
        # Else the pipe is full: the next upload or commit that ends checks again.

    def _check_at(self, due: float) -> None:
        """Check again at `due`."""
        if self._timer is not None:
            if self._timer_due <= due:
                return  # the earlier check schedules the next one
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.create_task(self._wait_and_check(due), name="wal-rotation")

    async def _wait_and_check(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._timer = None
        self._windows.waited()
        self._check_rotation()

    def _rotate(self) -> None:
        file, self._gathering = self._gathering, GatheredFile()
        self._windows.rotated()
        self._rotations += 1
        file.number = self._rotations
        # Increases even if the clock goes back: it is the order of a broker's objects if the database is lost.
        file.created_ms = self._last_created_ms = max(self._clock.now_ms(), self._last_created_ms + 1)
        self._order.rotated(file)
        self._start(self._carry(file), "wal-file")

    def _seal(self) -> int:
        if self._gathering.batches:
            self._rotate()
        return self._rotations

    # A file, from rotation to its answers

    async def _carry(self, file: GatheredFile) -> None:
        """Upload one file; then commit the files whose turn it is, unless another task is committing."""
        abandoned: list[str] = []
        try:
            await self._uploads.upload(file, abandoned)
        except KafkaStorageError as error:
            self._upload_failed(file, error)
        except Exception:
            logger.exception("a WAL object of %d batches could not be built", file.batch_count)
            self._upload_failed(
                file, KafkaStorageError("The broker could not write the batch; the broker's log says why.")
            )
        else:
            self._order.uploaded(file)
        del file  # this task may go on for long with other files, and must not keep these batches in memory
        self._discard(abandoned)
        self._check_rotation()
        while group := self._order.begin_commit():
            await self._committer.commit(group)
            self._order.end_commit()
            for committed in group:
                self._release(committed)
            del group, committed
            self._check_rotation()

    def _upload_failed(self, file: GatheredFile, error: StrandlineError) -> None:
        self._order.failed(file)
        self._totals.uploads_failed += 1
        self._committer.lost(file, file.batches)
        self._give_up(file, error)

    def _give_up(self, file: GatheredFile, error: StrandlineError) -> None:
        self._totals.batches_failed += file.answer_rest(error)
        self._release(file)

    def _release(self, file: GatheredFile) -> None:
        """All batches of a file have their answers: its bytes are no longer pending."""
        self._pending_bytes -= file.byte_count
        self._windows.answered(file.batches)
        # Not at the limit itself: requests in flight behind a refused one must be refused as well.
        if self._pending_bytes <= self._limits.max_pending_bytes * 3 // 4:
            self._is_overloaded = False

    def _discard(self, object_keys: Collection[str]) -> None:
        if object_keys:
            self._start(self._uploads.discard(object_keys), "wal-discard")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        self._is_idle.clear()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._is_idle.set()

    # The end

    def hurry(self) -> None:
        """The broker stops soon: what lingers is written now, so that its producers get their answers."""
        self._rules.end_lingering()
        self._check_rotation()

    async def close(self, *, within: float) -> None:
        """Refuse new batches and finish those taken within `within` seconds; the rest gets an error."""
        self._is_closed = True
        self._seal()
        await self._clock.wait_set(self._is_idle, within=within)
        tasks = [*self._tasks, *([self._timer] if self._timer is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        committing, waiting = self._order.abandon()
        for file in committing:
            self._give_up(file, RequestTimedOut("The broker stopped before it knew whether the batch was committed."))
        for file in waiting:
            self._give_up(file, KafkaStorageError("The broker stopped before the batch was committed."))

    def status(self) -> WriterStatus:
        """For metrics and tests."""
        now = self._clock.monotonic()
        pipe = self._order.pipe
        oldest = next(iter(self._order), self._gathering)
        return WriterStatus(
            gathered_bytes=self._gathering.byte_count,
            gathered_batches=self._gathering.batch_count,
            pending_bytes=self._pending_bytes,
            uploads_running=self._uploads.running,
            uploads_waiting=pipe.uploading - self._uploads.running,
            files_waiting_for_commit=pipe.uploaded,
            files_committing=pipe.committing,
            oldest_pending_seconds=now - oldest.since if oldest.batches else 0.0,
            totals=replace(self._totals),
        )
