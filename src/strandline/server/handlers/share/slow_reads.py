"""Reads of share partitions from a store, which may take long: no request waits for one longer than its client wants.

A read belongs to its partition, not to the request that began it. Its result goes to whichever request of the group
looks at the partition first, and is dropped if none comes soon. While it lasts, other requests do not read the
partition, and are told when it ends. Memory for it is taken when it begins, and given back with the result.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple

from strandline.clock import Clock, within
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.hybrid.reading import PendingRead
from strandline.model import Offset
from strandline.reads import FetchIsolation, ReadResult, Watcher
from strandline.server.memory import AnswerMemory, ReadGrant
from strandline.share_delivery.partition import SharePartition
from strandline.share_delivery.partitions import SharePartitions

logger = logging.getLogger(__name__)

# A store that has not answered for so long is asked again, when the next request comes.
SLOW_READ_SECONDS: Final = 10.0
# A member that processes records for longer than this before it fetches again has its next ones read again.
_KEPT_SECONDS: Final = 10.0


class _ReadFrom(NamedTuple):
    """What a read was for: a result is good for the same question only."""

    offset: Offset
    isolation: FetchIsolation


class _LateResult:
    """What a read brought. A `Watcher` of its share partition: if that is fenced, no request will ask for it."""

    def __init__(self, share: SharePartition, place: _ReadFrom, result: ReadResult | StrandlineError) -> None:
        self.share, self.place, self.result = share, place, result
        self.is_over = asyncio.Event()

    def notify(self) -> None:
        if self.share.failure is not None:
            self.is_over.set()


class SlowShareReads:
    """The reads of this broker. Lives on the event loop."""

    def __init__(self, shares: SharePartitions, memory: AnswerMemory, clock: Clock) -> None:
        self._shares, self._memory, self._clock = shares, memory, clock
        self._late: dict[SharePartition, _LateResult] = {}

    def has(self, share: SharePartition, offset: Offset, isolation: FetchIsolation) -> bool:
        """Whether there is a result of a read from this offset on."""
        late = self._late.get(share)
        return late is not None and late.place == (offset, isolation)

    def take(
        self, share: SharePartition, offset: Offset, isolation: FetchIsolation
    ) -> ReadResult | StrandlineError | None:
        """The result of a read from this offset on, if there is one. It is not kept any longer."""
        late = self._late.pop(share, None)
        if late is None:
            return None
        late.is_over.set()
        return late.result if late.place == (offset, isolation) else None

    def begin(
        self,
        share: SharePartition,
        offset: Offset,
        isolation: FetchIsolation,
        read: PendingRead,
        max_bytes: int,
        requester: Watcher,
    ) -> None:
        """Read, and notify `requester` when there is a result, or when there may be memory to begin."""
        grant = ReadGrant(self._memory)
        granted = grant.take(max_bytes)
        if not granted:
            self._memory.watch(requester)
            return
        share.is_fetching = True
        share.turn_away(requester)
        self._shares.spawn(self._serve(share, _ReadFrom(offset, isolation), read, grant, granted))

    async def _serve(
        self, share: SharePartition, place: _ReadFrom, read: PendingRead, grant: ReadGrant, granted: int
    ) -> None:
        try:
            try:
                result = await self._read(share, read, granted)
            finally:
                share.end_fetch()
            if result is not None and share.failure is None:
                await self._keep(_LateResult(share, place, result))
        finally:
            grant.give_back()

    async def _read(
        self, share: SharePartition, read: PendingRead, max_bytes: int
    ) -> ReadResult | StrandlineError | None:
        reading = self._shares.partitions.read(
            [read], max_bytes=max_bytes, min_one_message=True, is_wanted=lambda: share.failure is None
        )
        try:
            [result] = await within(self._clock, SLOW_READ_SECONDS, reading)
        except TimeoutError:
            logger.warning("records of share partition %s did not come within %g s", share.key, SLOW_READ_SECONDS)
            return None
        except Exception as error:  # the requests that wait for it must be answered
            logger.exception("records of share partition %s cannot be read", share.key)
            return KafkaStorageError(f"Records of share partition {share.key} cannot be read: {error}")
        return result

    async def _keep(self, late: _LateResult) -> None:
        self._late[late.share] = late
        late.share.watch(late)
        try:
            await self._clock.wait_set(late.is_over, within=_KEPT_SECONDS)
        finally:
            late.share.unwatch(late)
            if self._late.get(late.share) is late:
                del self._late[late.share]
