"""Fetch, versions 4 to 18: long polls, incremental sessions, fairness over partitions.

Records leave as ranges of segment files, or as views of what is in memory; nothing is copied or decoded here. How one
request is served is in `poll`. The requests of followers tell the leader how far they are (`places`, and
`server.follower_places`). Known gaps: no preferred read replica, no quotas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from strandline.errors import StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.server.deadlines import Deadlines
from strandline.server.exchange import Exchange
from strandline.server.fetch_sessions import FetchSessions
from strandline.server.handlers.fetch.poll import FetchPoll
from strandline.server.handlers.fetch.sharing import LookingPoll, WokenPolls
from strandline.server.memory import AnswerMemory
from strandline.server.page_cache import PageCache
from strandline.tasks import TaskSet
from strandline.wire.errors import error_code_of
from strandline.wire.fetch_codec import FIRST_WITH_TOPIC_IDS, FetchEntry, read_fetch_request, write_fetch_response


class FetchHandler:
    """Serves readers."""

    def __init__(
        self,
        partitions: Partitions,
        sessions: FetchSessions,
        deadlines: Deadlines,
        *,
        memory: AnswerMemory,
        pages: PageCache,
        loop: asyncio.AbstractEventLoop,
        max_bytes: int,
    ) -> None:
        self.partitions = partitions
        self.memory = memory
        self._woken = WokenPolls(loop, pages)
        self.max_bytes = max_bytes
        self._sessions = sessions
        self.call_within = deadlines.call_within
        self._slow = TaskSet()

    def handle(self, frame: memoryview, position: int, exchange: Exchange, client_id: str | None) -> None:
        """Answer at once if there are min.bytes, or when there are, or when max.wait.ms is over."""
        version = exchange.api_version
        request = read_fetch_request(frame, position, version)
        exchange.release_frame()
        if request.replica_id >= 0:
            exchange.comes_from_follower()
        try:
            context = self._sessions.open(
                request, uses_ids=version >= FIRST_WITH_TOPIC_IDS, connection_id=exchange.connection.connection_id
            )
        except StrandlineError as error:
            code = int(error_code_of(error))
            exchange.count_error(code)
            exchange.respond(write_fetch_response(exchange.correlation_id, version, [], error_code=code))
            return
        FetchPoll(self, exchange, request, context).begin()

    def look_soon(self, poll: LookingPoll) -> None:
        """Let a poll look at its partitions once this turn of the loop is through with its appends."""
        self._woken.add(poll)

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Do something that a poll waits for."""
        self._slow.start(work, name="fetch-slowly")

    async def close(self) -> None:
        """Cancel what still runs."""
        await self._slow.close()

    def find(self, entry: FetchEntry) -> ServedPartition:
        """The partition an entry means, if this broker leads it in the epoch the client knows."""
        topic = entry.topic
        name = topic if isinstance(topic, str) else self.partitions.topic_name(topic)
        partition = self.partitions.find(name, entry.partition)
        partition.newest.check_leader(entry.current_leader_epoch)
        return partition
