"""One share partition on the broker that leads its partition: delivery, stored through the share coordinator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from strandline.clock import Clock
from strandline.config.share_group import ShareGroupConfig, reset_age_ms
from strandline.coordinators.runtime import Timer, Timers
from strandline.coordinators.share_states import (
    DeliveryBatch,
    ShareGroupStates,
    SharePartitionKey,
    ShareStateUpdate,
    combined,
)
from strandline.crash import crash_point
from strandline.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    InvalidRequest,
    LeaderNotAvailable,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.hybrid.partition import ServedPartition
from strandline.model import NO_OFFSET, Offset
from strandline.reads import EARLIEST, LATEST, FetchIsolation, Watcher
from strandline.share_delivery.delivery import (
    Acknowledgement,
    AcquiredBatch,
    AcquireLimits,
    DeliveryChange,
    FetchedBatch,
    ShareDelivery,
)
from strandline.share_errors import FencedStateEpoch

logger = logging.getLogger(__name__)

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]
Stored: TypeAlias = asyncio.Future[StrandlineError | None]
"""Ends when a change is stored, or with the reason why it is not known to be."""
_NO_DELIVERY: Final = ShareDelivery(0)


class SharePartition:
    """Records of one partition on their way to the members of one group. Lives on the event loop.

    It belongs to one leader epoch of the partition, and is useless from the moment on when the epoch is over
    (`fence`). Changes are stored one write after the other; a write takes everything that has come up meanwhile.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        served: ServedPartition,
        states: ShareGroupStates,
        config: Callable[[], ShareGroupConfig],
        *,
        clock: Clock,
        timers: Timers,
        spawn: Spawn,
        on_fenced: Callable[[SharePartition], None],
        predecessor: SharePartition | None = None,
    ) -> None:
        """`on_fenced` is called when the coordinator says that another leader has taken the share partition over, or
        that its state was begun anew. `predecessor` was fenced, and may still be writing."""
        self.key, self.served, self.config = key, served, config
        self.leader_epoch = served.newest.leader_epoch
        self.is_fetching = False
        """True while a request reads for a member: another one would read the same records."""
        self.failure: StrandlineError | None = None
        """Why it cannot be used (any more)."""
        self._states, self._clock, self._timers, self._spawn = states, clock, timers, spawn
        self._on_fenced = on_fenced
        self._state_epoch = 0
        self._delivery = _NO_DELIVERY
        self._loaded = asyncio.Event()
        self._watchers: set[Watcher] = set()
        self._turned_away: set[Watcher] = set()
        self._timer: Timer | None = None
        self._unstored: list[tuple[DeliveryChange, Stored]] = []
        self._expired: list[DeliveryBatch] = []
        """Locks that have ended, and are to be written."""
        self._missed: tuple[DeliveryBatch, ...] = ()
        """Those whose write failed: they have ended all the same, and go with the next write."""
        self._is_idle = asyncio.Event()
        """Set while nothing is under way to the share coordinator."""
        self._spawn(self._load(predecessor))

    # Loading

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def _load(self, predecessor: SharePartition | None) -> None:
        try:
            if predecessor is not None:
                # In one leader epoch the coordinator cannot tell them apart: read what the predecessor writes.
                await predecessor.wait_written()
            if self.failure is None:
                await self._read_state()
        except StrandlineError as error:
            self.fence(member_error(error))
        except Exception as error:  # the requests that wait for it must be answered
            logger.exception("share partition %s cannot be loaded", self.key)
            self.fence(StrandlineError(f"The share partition {self.key} cannot be loaded: {error}"))
        finally:
            self._is_idle.set()
        self._loaded.set()
        self._notify()

    async def _read_state(self) -> None:
        state = await self._states.read(self.key, leader_epoch=self.leader_epoch)
        self._state_epoch, start = state.state_epoch, state.start_offset
        if start == NO_OFFSET:
            start = await self._first_offset()
            if self.failure is not None:
                return  # its successor chooses
            # Stored before any member gets records: a leader that chose again could choose an offset behind them.
            await self._states.write(self.key, self._update(start, settled_count=0))
        self._delivery = ShareDelivery(start, state.batches)

    async def _first_offset(self) -> Offset:
        """Where a group begins that has not read the partition before."""
        age_ms = reset_age_ms(self.config().share_auto_offset_reset)
        timestamp = EARLIEST
        if age_ms is not None:
            timestamp = LATEST if age_ms == 0 else max(self._clock.now_ms() - age_ms, 0)
        found = await self._list_offset(timestamp)
        if found == NO_OFFSET and timestamp >= 0:
            found = await self._list_offset(LATEST)  # nothing is as young as that
        if found == NO_OFFSET:
            raise OffsetNotAvailable(f"It is not known where {self.served.topic_partition} begins or ends.")
        return found

    async def _list_offset(self, timestamp: int) -> Offset:
        found = await self.served.list_offset(
            timestamp, isolation=FetchIsolation.HIGH_WATERMARK, current_leader_epoch=self.leader_epoch
        )
        return found.offset

    def fence(self, error: StrandlineError) -> None:
        """It cannot be used any more: requests that wait for it get the error."""
        if self.failure is None:
            self.failure = error
            if self._timer is not None:
                self._timer.cancel()
            self._loaded.set()
            self._notify()

    @property
    def is_writing(self) -> bool:
        """Whether the share coordinator may still hear from it, also after `fence`."""
        return not self._is_idle.is_set()

    async def wait_written(self) -> None:
        """Return when the coordinator hears nothing more from this one, which is fenced."""
        await self._is_idle.wait()

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
        if not self.is_loaded:
            raise LeaderNotAvailable(f"The share partition {self.key} is still being loaded.")

    # Waiting

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` when there may be something to acquire, until `unwatch`."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)
        self._turned_away.discard(watcher)

    def _notify(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.notify()

    # Acquiring

    def next_offset(self) -> Offset | None:
        """Where to read for the next member; None if nothing can be acquired now. Raises StrandlineError."""
        self._check()
        delivery = self._delivery
        if not delivery.can_acquire(self.config().share_partition_max_record_locks):
            return None
        return delivery.next_offset()

    def acquire(
        self,
        member: str,
        read_from: Offset,
        batches: Sequence[FetchedBatch],
        *,
        max_records: int,
        batch_size: int,
        is_strict: bool,
    ) -> list[AcquiredBatch]:
        """Give a member what is available of these batches. Raises StrandlineError."""
        self._check()
        config = self.config()
        limits = AcquireLimits(
            max_records=max_records,
            batch_size=batch_size,
            max_locks=config.share_partition_max_record_locks,
            max_deliveries=config.share_delivery_count_limit,
            is_strict=is_strict,
        )
        acquired = self._delivery.acquire(member, read_from, batches, limits, deadline=self._lock_end(config))
        self._watch_locks()
        return acquired

    def end_fetch(self, reader: Watcher | None = None) -> None:
        """The request that read is through: others may look."""
        self.is_fetching = False
        waiting, self._turned_away = self._turned_away - {reader}, set()
        for watcher in waiting:
            watcher.notify()

    def turn_away(self, watcher: Watcher) -> None:
        """Another request reads: notify `watcher` when it is through."""
        self._turned_away.add(watcher)

    def follow_log_start(self) -> None:
        """Records were deleted, or expired: begin where the log does. No request reads meanwhile."""
        self.is_fetching = True
        self._spawn(self._follow_log_start())

    async def _follow_log_start(self) -> None:
        try:
            self._delivery.move_start(await self._list_offset(EARLIEST))
        except StrandlineError as error:
            logger.warning("it is not known where the log of share partition %s begins: %s", self.key, error)
        finally:
            self.end_fetch()

    # Answers of members

    async def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> None:
        """Returns when it is stored. Raises StrandlineError: then nothing has changed, as far as is known."""
        self._check()
        config = self.config()
        changed = self._delivery.acknowledge(
            member,
            acknowledgements,
            max_deliveries=config.share_delivery_count_limit,
            renewed_until=self._lock_end(config) if config.share_renew_acknowledge_enable else None,
        )
        self._watch_locks()
        stored = self._store(changed)
        # The request that waits may be cancelled; the write goes on, and ends the change.
        error = None if stored is None else await asyncio.shield(stored)
        if error is not None:
            raise error

    def release(self, member: str) -> Stored | None:
        """The member is gone: at once, so that what it acquires in another session stays with it.

        The result comes when that is stored; None if the member has nothing. Raises StrandlineError.
        """
        self._check()
        limit = self.config().share_delivery_count_limit
        return self._store(self._delivery.release(member, max_deliveries=limit))

    # Locks

    def _lock_end(self, config: ShareGroupConfig) -> float:
        return self._clock.monotonic() + config.share_record_lock_duration_ms / 1000

    def _watch_locks(self) -> None:
        """See to it that a timer looks when the next lock ends, or earlier."""
        if self.failure is not None or (self._timer is not None and self._timer.is_pending):
            return
        deadline = self._delivery.next_deadline()
        if deadline is None:
            return
        delay_ms = (deadline - self._clock.monotonic()) * 1000
        if self._timer is None:
            self._timer = self._timers.after(delay_ms, self._locks_end)
        else:
            self._timer.restart(delay_ms)

    def _locks_end(self) -> None:
        if self.failure is not None:
            return
        limit = self.config().share_delivery_count_limit
        expired = self._delivery.expire(self._clock.monotonic(), max_deliveries=limit)
        self._watch_locks()
        if expired:
            self._expired += expired
            self._write_soon()
            self._notify()

    # Storing

    def _store(self, changed: DeliveryChange) -> Stored | None:
        if not changed.runs:
            return None
        done: Stored = asyncio.get_running_loop().create_future()
        self._unstored.append((changed, done))
        self._write_soon()
        return done

    def _write_soon(self) -> None:
        if self._is_idle.is_set():
            self._is_idle.clear()
            self._spawn(self._write())

    async def _write(self) -> None:
        try:
            while self._unstored or self._expired:
                changes, self._unstored = self._unstored, []
                expired = [*self._missed, *self._expired]
                self._expired, self._missed = [], ()
                error = await self._write_once([*expired, *(b for change, _ in changes for b in change.batches())])
                if error is not None:
                    # Where offsets have gone on by then, the larger count wins.
                    self._missed = combined(expired, self._delivery.start)
                for change, _ in changes:
                    (self._delivery.commit if error is None else self._delivery.roll_back)(change)
                for _, done in changes:
                    if not done.done():
                        done.set_result(error)
                self._watch_locks()
                self._notify()
        finally:
            self._is_idle.set()

    async def _write_once(self, batches: Sequence[DeliveryBatch]) -> StrandlineError | None:
        if self.failure is not None:
            return self.failure
        crash_point("share.delivery.before_store")
        try:
            update = self._update(self._delivery.start, batches, settled_count=self._delivery.settled_count)
            await self._states.write(self.key, update)
        except StrandlineError as error:
            logger.warning("the state of share partition %s could not be stored: %s", self.key, error)
            told = member_error(error)
            # Without state the group is gone, or its partition was begun anew: nothing here is true any more.
            if isinstance(error, FencedLeaderEpoch | FencedStateEpoch | InvalidRequest | UnknownTopicOrPartition):
                self.fence(told)
                self._on_fenced(self)
            return told
        except Exception as error:  # the members that wait for it must be answered
            logger.exception("the state of share partition %s could not be stored", self.key)
            return StrandlineError(f"The state of share partition {self.key} could not be stored: {error}")
        crash_point("share.delivery.after_store")
        return None

    def _update(self, start: Offset, batches: Sequence[DeliveryBatch] = (), *, settled_count: int) -> ShareStateUpdate:
        return ShareStateUpdate(
            state_epoch=self._state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=start,
            delivery_complete_count=settled_count,
            batches=combined(batches, start),
        )


def member_error(error: StrandlineError) -> StrandlineError:
    """The error for a member when the share coordinator has refused: it tells where to go, not what went wrong."""
    if isinstance(error, NotCoordinator | CoordinatorNotAvailable | CoordinatorLoadInProgress):
        return CoordinatorNotAvailable(str(error))
    if isinstance(error, FencedLeaderEpoch | FencedStateEpoch):
        return NotLeaderOrFollower(str(error))
    return error
