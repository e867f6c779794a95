"""The writer: takes batches of any partition, puts them into shared WAL objects and has the control plane order them.

Gather, rotate, upload, commit, stamp, tell the readers, answer the producers. Uploads run in parallel, commits one
after the other in the order of rotation, so that several requests of one producer make progress at the same time and
keep their order. What is decided is decided in `rotation`, `commit_order` and `sequence_gaps`; what is done, in
`uploads` and `committer`. Here they meet.
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
from strandline.errors import KafkaStorageError, RequestTimedOut, StrandlineError
from strandline.objects.store import ObjectStore

logger = logging.getLogger(__name__)


class WalWriter:
    """`BatchAppends` of one broker, on its event loop. Call `close` in the end.

    A batch that cannot be written gets one of these errors. Clients answer all of them by sending it again, but for a
    wrong epoch:

    - KafkaStorageError: its object was not uploaded, or was taken for an orphan; it certainly was not committed; or
      the writer is closed;
    - RequestTimedOut: too much is on its way already, or nobody knows whether it was committed;
    - UnknownTopicOrPartition: the control plane has no log for it;
    - OutOfOrderSequence, InvalidProducerEpoch: as in Kafka.
    """

    def __init__(
        self,
        store: ObjectStore,
        control_plane: BatchCommits,
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
            CommitCalls(control_plane, clock=clock, chance=chance),
            listener,
            self._totals,
            broker_id=broker_id,
            patience=limits.patience,
            seal=self._seal,
            discard=self._discard,
        )
        self._order: CommitQueue[GatheredFile] = CommitQueue(max_batches=limits.max_batches)
        self._gathering = GatheredFile()
        self._rotations = 0
        self._last_created_ms = 0
        self._pending_bytes = 0
        self._is_overloaded = False
        self._is_closed = False
        self._looks_soon = False
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    # Gathering

    def append(self, batch: DisklessAppend, done: AppendDone) -> None:
        """Take a batch; `done` is called in a later turn of the loop. Cheap: the work is done per object."""
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
        self._pending_bytes += size
        if not self._looks_soon:
            # Not now: the other batches of this request, and requests that are here already, go into the same object.
            self._looks_soon = True
            self._loop.call_soon(self._look)

    def _refusal(self) -> StrandlineError | None:
        """Why nothing is taken at the moment; None for a batch that only exceeds the limit all by itself."""
        if self._is_closed:
            return KafkaStorageError("This broker is stopping; the batch may be sent to another one.")
        if self._pending_bytes == 0:
            return None
        self._is_overloaded = True
        self._totals.batches_over_limit += 1
        return RequestTimedOut(
            f"{self._pending_bytes} bytes of diskless batches wait to be uploaded and committed; the limit is "
            f"{self._limits.max_pending_bytes}. Nothing of the batch was written; it may be sent again."
        )

    def _look(self) -> None:
        """Rotate if it is time to. Called whenever that may have changed."""
        self._looks_soon = False
        now = self._clock.monotonic()
        gathered, pipe, usual = self._gathering.gathered(now), self._order.pipe, self._uploads.usual_seconds
        if self._rules.is_due(gathered, pipe, upload_seconds=usual):
            self._rotate()
        elif gathered.batch_count and (left := self._rules.seconds_left(gathered, pipe, upload_seconds=usual)) > 0:
            self._look_at(now + left)
        # Else the pipe is full, and whatever leaves it looks again.

    def _look_at(self, due: float) -> None:
        """See to it that somebody looks again then."""
        if self._timer is not None:
            if self._timer_due <= due:
                return  # and then looks how much longer it is
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.create_task(self._wait_and_look(due), name="wal-rotation")

    async def _wait_and_look(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._timer = None
        self._look()

    def _rotate(self) -> None:
        file, self._gathering = self._gathering, GatheredFile()
        self._rotations += 1
        file.number = self._rotations
        # Growing even if the clock goes back: without the database it is the order of the objects of a broker.
        file.created_ms = self._last_created_ms = max(self._clock.now_ms(), self._last_created_ms + 1)
        self._order.rotated(file)
        self._start(self._carry(file), "wal-file")

    def _seal(self) -> int:
        if self._gathering.batches:
            self._rotate()
        return self._rotations

    # The way of a file

    async def _carry(self, file: GatheredFile) -> None:
        """Upload one file; then commit whatever is next, unless another task does that already."""
        abandoned: list[str] = []
        try:
            await self._uploads.upload(file, abandoned)
        except KafkaStorageError as error:
            self._upload_failed(file, error)
        except Exception:
            logger.exception("a WAL object of %d batches could not be made", file.batch_count)
            self._upload_failed(file, KafkaStorageError("The broker could not write the batch; its log says why."))
        else:
            self._order.uploaded(file)
        del file  # it may be long until this task ends, and the batches must not stay in memory so long
        self._discard(abandoned)
        self._look()
        while group := self._order.begin_commit():
            await self._committer.commit(group)
            self._order.end_commit()
            for committed in group:
                self._release(committed)
            del group, committed
            self._look()

    def _upload_failed(self, file: GatheredFile, error: StrandlineError) -> None:
        self._order.failed(file)
        self._totals.uploads_failed += 1
        self._committer.lost(file, file.batches)
        self._give_up(file, error)

    def _give_up(self, file: GatheredFile, error: StrandlineError) -> None:
        self._totals.batches_failed += file.answer_rest(error)
        self._release(file)

    def _release(self, file: GatheredFile) -> None:
        """Everybody was told about a file: its bytes count no more."""
        self._pending_bytes -= file.byte_count
        # Not at the limit itself: of a producer's requests in flight, those behind a refused one are refused as well.
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

    async def close(self, *, within: float) -> None:
        """Take nothing more, and bring what was taken to its end within so many seconds; the rest is told so."""
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
        """What it is doing."""
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
