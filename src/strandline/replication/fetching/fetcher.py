"""Copies the partitions of one leader over one connection, for as long as there are any."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from strandline.clock import Clock
from strandline.config.replication import ReplicationSettings
from strandline.errors import LeaderNotAvailable, UnsupportedVersion
from strandline.model import BrokerId
from strandline.replication.fetching.connection import LeaderConnection
from strandline.replication.fetching.frames import FrameRoom
from strandline.replication.fetching.ranges import OffsetQuestion
from strandline.replication.fetching.retries import FIRST_RETRY_SECONDS, retry_delay
from strandline.replication.fetching.state import FetcherState
from strandline.replication.fetching.talking import offset_answers, offset_request
from strandline.tasks import Setbacks
from strandline.wire.api import ApiKey
from strandline.wire.fetch_client import FollowerFetch, read_fetched, write_follower_fetch
from strandline.wire.kept_connection import BrokerAddress
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import decode_response

logger = logging.getLogger(__name__)

_FAILURES: Final = (OSError, TimeoutError, MalformedRequest, UnsupportedVersion, LeaderNotAvailable)

WRITING_SECONDS: Final = 0.05
"""How long the next request waits for the writes of the last answer. A disk that takes longer holds up only its own
partitions; usually they are written at once, and need not be taken out of the session and be put into it again."""
_MOST_ROOMS_HELD: Final = 4
HURRY_SECONDS: Final = 0.02
"""How long a request that waits for records may hold up one that says something new. Then it is given up."""
_BETWEEN_HURRIES: Final = 0.25


class _Hurry(ConnectionError):
    """The request under way is given up; the leader has read it, and its session goes on."""


class Fetcher:
    """See the module. `run` lasts until it is cancelled; everything else is called on the event loop."""

    def __init__(
        self,
        leader: BrokerId,
        number: int,
        settings: ReplicationSettings,
        *,
        node_id: BrokerId,
        broker_epoch: Callable[[], int],
        address: Callable[[BrokerId], BrokerAddress],
        cluster_id: Callable[[], str],
        clock: Clock,
    ) -> None:
        """`address` is where the leader is now. It raises LeaderNotAvailable."""
        self.leader: Final = leader
        self._settings = settings
        self._node_id = node_id
        self._address, self._cluster_id, self._clock = address, cluster_id, clock
        self._client_id = f"broker-{node_id}-fetcher-{number}"
        self._loop = asyncio.get_running_loop()
        self.state: Final = FetcherState(
            settings, node_id=node_id, broker_epoch=broker_epoch, woken=self._state_has_news
        )
        self._news = asyncio.Event()
        self._goes_on_soon = False
        self._connection: LeaderConnection | None = None
        self._version = 0
        self._asked: FollowerFetch | OffsetQuestion | None = None
        self._asked_at = self._hurried_at = self._writes_awaited_until = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._hurry: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._setbacks = Setbacks(f"copying from broker {leader}", logger)
        self._attempts = 0

    # The connection

    async def run(self) -> None:
        """Copy until cancelled. A connection that fails is opened again, after replica.fetch.backoff.ms at most."""
        try:
            while True:
                if not len(self.state):
                    await self._news.wait()
                self._news.clear()
                try:
                    await self._converse()
                except Exception as failure:  # a bug that one leader brings out: the others are copied
                    logger.exception("copying from broker %d failed", self.leader)
                    self.state.lost()
                    await self._rest(failure)
        finally:
            self._stop_timers()

    async def _converse(self) -> None:
        """One connection from its beginning to its end."""
        seconds = self._settings.replica_socket_timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds):
                address = self._address(self.leader)
                connection = await LeaderConnection.open(
                    address, client_id=self._client_id, cluster_id=self._cluster_id()
                )
        except _FAILURES as error:
            await self._rest(error)
            return
        self._version = connection.version_of(ApiKey.FETCH)
        self._connection, self._asked = connection, None
        try:
            self._go_on()
            reason = await connection.over
        finally:
            connection.close()
            self._connection, self._asked = None, None
            self._stop_timers()
        if not isinstance(reason, _Hurry):
            self.state.lost()
            await self._rest(reason)

    async def _rest(self, error: Exception) -> None:
        """Wait before the next attempt, but not long once the metadata has something new."""
        self._attempts += 1
        self._setbacks.met(error)
        most = self._settings.replica_fetch_backoff_ms / 1000
        delay = retry_delay(self._attempts, most=most)
        await self._clock.sleep(min(delay, FIRST_RETRY_SECONDS))
        if delay > FIRST_RETRY_SECONDS:
            await self._clock.wait_set(self._news, within=delay - FIRST_RETRY_SECONDS)

    # Asking and answers

    def _state_has_news(self) -> None:
        self._news.set()
        if not self._goes_on_soon and self._connection is not None:
            self._goes_on_soon = True  # once for all that happens in this turn of the loop
            self._loop.call_soon(self._go_on_now)

    def _go_on_now(self) -> None:
        self._goes_on_soon = False
        self._go_on()

    def _go_on(self) -> None:
        """Send the next request, if the last one is answered and there is something to ask for."""
        connection = self._connection
        if connection is None or connection.over.done():
            return
        now = self._loop.time()
        if self._asked is not None:
            self._hurry_up(now)
            return
        if self._must_wait_for_writes(connection, now):
            return
        request = self.state.next_request(now)
        if request is None:
            self._wake_at(self.state.next_due())
            return
        self._asked, self._asked_at = request, now
        self._watch()
        if isinstance(request, OffsetQuestion):
            message = offset_request(request, self._node_id)
            version = connection.version_of(ApiKey.LIST_OFFSETS)
            connection.ask(ApiKey.LIST_OFFSETS, message, self._answered, version=version)
            return
        number = connection.next_id()
        frame = write_follower_fetch(request, correlation_id=number, version=self._version, client_id=self._client_id)
        connection.send(frame, self._answered)

    def _must_wait_for_writes(self, connection: LeaderConnection, now: float) -> bool:
        if connection.rooms.held >= _MOST_ROOMS_HELD:
            return True  # the end of a write wakes it
        if self.state.is_writing and now < self._writes_awaited_until:
            self._wake_at(self._writes_awaited_until)
            return True
        return False

    def _answered(self, frame: memoryview, room: FrameRoom) -> None:
        """The leader has answered. Raises MalformedRequest or ConnectionError, which end the connection."""
        asked, self._asked = self._asked, None
        now = self._loop.time()
        if isinstance(asked, OffsetQuestion):
            assert self._connection is not None
            version = self._connection.version_of(ApiKey.LIST_OFFSETS)
            answer = decode_response(ApiKey.LIST_OFFSETS, version, frame)[1]
            self.state.offsets_answered(asked, offset_answers(answer), now)
        else:
            writes_before = self.state.writes_begun
            error = self.state.answered(read_fetched(frame), room, now)
            if error is not None:
                raise ConnectionError(str(error))
            if self.state.writes_begun != writes_before:
                self._writes_awaited_until = now + WRITING_SECONDS
        if self._attempts:
            self._attempts = 0
            self._setbacks.over()
        self._go_on()

    # Times

    def _wake_at(self, when: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if when is None else self._loop.call_at(when, self._go_on)

    def _hurry_up(self, now: float) -> None:
        """The leader holds the request under way until there are records; meanwhile there is something new to ask."""
        if self._hurry is None and self.state.has_news and isinstance(self._asked, FollowerFetch):
            when = max(now + HURRY_SECONDS, self._hurried_at + _BETWEEN_HURRIES)
            self._hurry = self._loop.call_at(when, self._give_up_waiting, self._asked)

    def _give_up_waiting(self, asked: FollowerFetch) -> None:
        self._hurry = None
        connection = self._connection
        if connection is None or not self.state.has_news:
            return
        if self._asked is asked and not connection.is_receiving:
            self._hurried_at = self._loop.time()
            connection.close(_Hurry("There is something new to ask."))
        else:
            self._go_on()

    def _watch(self) -> None:
        if self._watchdog is None:
            seconds = self._settings.replica_socket_timeout_ms / 1000
            self._watchdog = self._loop.call_at(self._asked_at + seconds, self._look_for_answer)

    def _look_for_answer(self) -> None:
        """One timer for all requests: most are answered long before it rings, and it is set again for the newest."""
        self._watchdog = None
        seconds = self._settings.replica_socket_timeout_ms / 1000
        if self._asked is None or self._connection is None:
            return
        if self._loop.time() >= self._asked_at + seconds:
            self._connection.close(ConnectionError(f"The broker did not answer within {seconds:g} s."))
        else:
            self._watch()

    def _stop_timers(self) -> None:
        for timer in (self._alarm, self._hurry, self._watchdog):
            if timer is not None:
                timer.cancel()
        self._alarm = self._hurry = self._watchdog = None
