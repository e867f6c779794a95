"""What a fetch session remembers of one partition, and when it has to be looked at again. See `fetch_sessions`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from strandline.hybrid.partition import ServedPartition
from strandline.model import NO_EPOCH
from strandline.wire.fetch_codec import FetchAnswer, FetchEntry

if TYPE_CHECKING:
    from strandline.server.fetch_sessions import FetchSession


class Place:
    """What a session remembers of one partition: the client's request for it, and the last answer."""

    __slots__ = (
        "_partition",
        "_session",
        "_watches",
        "entry",
        "is_unsettled",
        "sent_high_watermark",
        "sent_log_start",
        "turn",
    )

    def __init__(self, entry: FetchEntry, session: FetchSession | None = None) -> None:
        self.entry = entry
        self._session = session
        self._partition: ref[ServedPartition] | None = None
        self._watches = False
        self.turn = 0
        """Its place in the line of its session."""
        self.sent_high_watermark = -1
        self.sent_log_start = -1
        self.is_unsettled = True  # new, or the last answer was an error: it is answered in any case

    @property
    def watches(self) -> bool:
        """True if the place is notified by its partition, and passes that on to the polls of its session."""
        return self._watches

    def has_news(self, answer: FetchAnswer) -> bool:
        return (
            self.is_unsettled
            or answer.records is not None
            or answer.error_code != 0
            or answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start
            or answer.diverging_epoch is not None
        )

    def found(self, partition: ServedPartition) -> None:
        """Remember the partition of the entry, weakly: a session may outlive it, and must not keep its files open.

        In a session the place watches it, if it keeps watchers.
        """
        known = self._partition
        if known is None or known() is not partition:
            self._unwatch()
            self._partition = ref(partition)
        if self._session is None or partition.newest.keeps_watchers is self._watches:
            return
        if self._watches:
            self._unwatch()
        else:
            self._watches = True
            self._watch(partition)

    def notify(self) -> None:
        """See `Watcher`: look at the place again, at once if a request waits.

        If none waits, later changes need not be told until a request has looked: a client may have left its session
        behind, and each such session would make appends more expensive.
        """
        session = self._session
        if session is None:
            return
        self.activate()
        partition = None if self._partition is None else self._partition()
        if not session.polls or (partition is not None and not partition.newest.keeps_watchers):
            self._unwatch()
        for poll in tuple(session.polls):
            poll.notify()

    def activate(self) -> None:
        """Look at the place with the next request."""
        if self._session is not None:
            self._session.active[self] = None

    def rest(self, partition: ServedPartition) -> None:
        """The place was found idle. It stays active if its partition would not tell of news."""
        if self._session is None:
            return
        if not self._watches:
            self.found(partition)
        if self._watches:
            self._session.active.pop(self, None)

    def served(self) -> ServedPartition | None:
        """The partition that was found last, if it is still served."""
        return None if self._partition is None else self._partition()

    def leave(self) -> None:
        """The place is no part of a session any more."""
        self._unwatch()
        self._session = None

    def _unwatch(self) -> None:
        if self._watches:
            self._watches = False
            partition = None if self._partition is None else self._partition()
            if partition is not None:
                self._stop_watching(partition)

    def _watch(self, partition: ServedPartition) -> None:
        """Be notified by the partition."""
        partition.newest.watch(self)

    def _stop_watching(self, partition: ServedPartition) -> None:
        """Not any more."""
        partition.newest.unwatch(self)

    def idle_partition(self) -> ServedPartition | None:
        """The partition, if a read would find no record and nothing else that is new to the client, as for most
        partitions of a large session. Asking costs a tenth of a read."""
        if self._partition is None or self.is_unsettled:
            return None
        partition, entry = self._partition(), self.entry
        if (
            partition is not None
            and entry.fetch_offset == self.sent_high_watermark
            and partition.newest.stands_at(self.sent_high_watermark, self.sent_log_start)
            and (entry.current_leader_epoch == NO_EPOCH or entry.current_leader_epoch == partition.newest.leader_epoch)
            and (entry.last_fetched_epoch == NO_EPOCH or entry.last_fetched_epoch == partition.newest.leader_epoch)
        ):
            return partition
        return None

    def sent(self, answer: FetchAnswer) -> None:
        self.sent_high_watermark = answer.high_watermark
        self.sent_log_start = answer.log_start_offset
        self.is_unsettled = answer.error_code != 0
