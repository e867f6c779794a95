"""Reading the places of one Fetch request: one look at all of them, in the order in which the session serves them.

Partitions are read from memory or from files where that is possible at once. For the others the look tells what to read
(`PendingRead`), which gets what they have left of fetch.max.bytes. What the request holds already is not read again.
"""

from __future__ import annotations

from strandline.errors import StrandlineError
from strandline.hybrid.layout import Tier
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.reads import ReadResult, Watcher
from strandline.records.slices import MemorySlices
from strandline.replication import LeaderRole
from strandline.server.fetch_sessions import FetchContext, Place
from strandline.server.follower_places import FollowerPlace
from strandline.server.handlers.fetch.answers import (
    answer_with,
    diverging_epoch,
    isolation_of,
    may_have,
    refusal,
)
from strandline.server.handlers.fetch.findings import Findings
from strandline.server.handlers.fetch.held import HeldAnswer, HeldReads, Holding, ReadBasis
from strandline.server.handlers.fetch.owner import PollOwner
from strandline.server.handlers.fetch.watching import PollWatch
from strandline.wire.fetch_codec import FetchAnswer, FetchEntry, FetchRequest


class PlaceReads:
    """Of one request, as long as it lasts."""

    __slots__ = (
        "_broker",
        "_broker_epoch",
        "_context",
        "_has_visited",
        "_may_wait",
        "_owner",
        "held",
        "isolation",
        "max_bytes",
        "max_wait_s",
        "watch",
    )

    def __init__(self, owner: PollOwner, request: FetchRequest, context: FetchContext) -> None:
        self._owner = owner
        self._context = context
        # A fetch with max.wait.ms=0 registers no watcher: without one, the known end of a diskless partition grows old.
        self._may_wait = request.max_wait_ms > 0
        self._broker, self._broker_epoch = request.replica_id, request.replica_epoch
        self._has_visited = False
        """Whether the first look is over: it is what tells where a follower is."""
        self.isolation = isolation_of(request)
        self.max_bytes = min(request.max_bytes, owner.max_bytes)
        """Of the whole response, unless its first batch is larger."""
        self.max_wait_s: float | None = None
        """How long the reads may take, if one of them has a limit. Then any of the records end the wait."""
        self.held = HeldReads(owner.memory)
        self.watch = PollWatch(sees_growth=self._broker >= 0)

    def look(self, watcher: Watcher) -> Findings:
        """Look at every place, and read those that are not held. `watcher` is notified when there is memory, if there
        was too little."""
        held = self.held.answers
        held_size = self.held.drop_outdated(self._owner.find, self.isolation) if held else 0
        remaining = self.max_bytes - held_size
        self.watch.found = {}
        answers: dict[Place, FetchAnswer] = {}
        pending: dict[Place, PendingRead] = {}
        size = memory = 0
        must_be_told = has_trouble = False
        may_skip = self._may_wait and not self._context.is_full
        for place in self._context.places:
            standing = place.idle_partition() if may_skip else None
            if standing is not None:
                place.rest(standing)
                self.watch.found[place] = standing
                continue
            # The first batch of the whole response may exceed every limit, so that a reader never gets stuck.
            min_one_message = size == 0 and held_size == 0
            known = held.get(place) if held else None
            limit = max(min(place.entry.max_bytes, remaining), 0)
            answer = self._read(place, known, limit, memory, watcher, min_one_message=min_one_message)
            if not isinstance(answer, FetchAnswer):
                pending[place] = answer
                continue
            answers[place] = answer
            records = answer.records
            if records is not None:
                length = records.length
                size += length
                memory += length if type(records) is MemorySlices else 0
                if known is None:
                    remaining -= length
            elif known is not None and known.answer is answer and known.holding is Holding.UNTIL_A_LOOK:
                has_trouble = True
            elif answer.error_code != 0 or answer.diverging_epoch is not None:
                must_be_told = True
        if self._broker >= 0 and not self._has_visited:
            self._has_visited = True
            self._context.has_visited()
        return Findings(answers, pending, size, memory, must_be_told, has_trouble)

    def _read(
        self,
        place: Place,
        known: HeldAnswer | None,
        max_bytes: int,
        memory: int,
        watcher: Watcher,
        *,
        min_one_message: bool,
    ) -> FetchAnswer | PendingRead:
        entry = place.entry
        try:
            partition = self._owner.find(entry)
            place.found(partition)
            self.watch.found[place] = partition
            leading = None if self._broker < 0 else self._leader_of(partition, entry)
            if entry.last_fetched_epoch >= 0:
                diverging = diverging_epoch(partition, entry)
                if diverging is not None:
                    return answer_with(entry, partition.newest.without_records())._replace(diverging_epoch=diverging)
            if known is not None:
                return known.answer
            extent = partition.extent_of(entry.fetch_offset)
            if leading is not None and not self._has_visited:
                self._visit(place, leading)
            if extent.tier is not Tier.LOCAL:  # its records stay in memory until they are sent
                room = self._owner.memory.room_beside(memory, watcher)
                max_bytes, min_one_message = min(max_bytes, room), min_one_message and room > 0
            result = extent.engine.read_now(
                entry.fetch_offset, max_bytes, isolation=self.isolation, min_one_message=min_one_message
            )
            if not isinstance(result, ReadResult):
                return self._later_or_final(place, partition, result)
        except StrandlineError as error:
            return refusal(entry, error)
        return answer_with(entry, result)

    def _leader_of(self, partition: ServedPartition, entry: FetchEntry) -> LeaderRole | None:
        """The role that knows the follower; None if the partition has no replicas. Raises StrandlineError."""
        replica = partition.appends.local_replica
        role = None if replica is None else replica.role
        if not isinstance(role, LeaderRole):
            return None
        role.check_follower(self._broker, entry.current_leader_epoch)
        return role

    def _visit(self, place: Place, leading: LeaderRole) -> None:
        """Let the leader take note of where the follower is, if that is in the log. Raises NotLeaderOrFollower."""
        entry, end = place.entry, leading.offsets.end
        if entry.fetch_offset <= end:
            leading.follower_fetched(self._broker, self._broker_epoch, entry.fetch_offset, entry.log_start_offset, end)
            if isinstance(place, FollowerPlace):
                place.visited(leading.epoch)

    def _later_or_final(
        self, place: Place, partition: ServedPartition, read: PendingRead | FinalRead
    ) -> FetchAnswer | PendingRead:
        if read.max_wait_s is not None:
            self.max_wait_s = read.max_wait_s
        if isinstance(read, PendingRead):
            return read
        result = read.result
        if isinstance(result, ReadResult) and result.records is None:
            return answer_with(place.entry, result)  # not held: when the wait is over, the quota may allow some
        return self.held.keep(place, ReadBasis.of(place, partition), result)

    def without_records(self, place: Place) -> FetchAnswer:
        """The answer for a place whose records did not come in time: why, if an earlier attempt has told."""
        trouble = self.held.troubles.get(place)
        if trouble is not None:
            return trouble
        try:
            return answer_with(place.entry, self._owner.find(place.entry).newest.without_records())
        except StrandlineError as error:
            return refusal(place.entry, error)

    def may_have(self, min_bytes: int) -> bool:
        """Whether there may be as many bytes to read. Cheaper than a look."""
        return self.held.has_trouble or may_have(min_bytes, self.watch.found, self._context.places, self.isolation)
