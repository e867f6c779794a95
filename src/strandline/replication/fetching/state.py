"""What one fetcher asks its leader, and what the answers mean.

No sockets, no waiting, no clock: time is an argument. `next_request` gives what to ask next, `answered` takes the
answer to it; in between partitions may come, go and change, and then an answer to what was asked before is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from strandline.config.replication import ReplicationSettings
from strandline.errors import StrandlineError
from strandline.model import BrokerId
from strandline.replication.fetching.copying import HeldFrame, copy_records, follow_leader
from strandline.replication.fetching.cutting import end_in_common
from strandline.replication.fetching.followed import FetchStage, FollowedPartition, Key
from strandline.replication.fetching.ranges import OffsetAnswer, OffsetQuestion, OutOfRangeFollowers, RangeMove
from strandline.replication.fetching.retries import Retries
from strandline.replication.fetching.session import FollowerSession
from strandline.replication.partition import Partition
from strandline.wire.errors import ErrorCode
from strandline.wire.fetch_client import FetchedPartition, FetchedPartitions, FollowerFetch

logger = logging.getLogger(__name__)

_SETTLING_WAIT_MS: Final = 20
_LOGGED_ATTEMPT: Final = 6

_OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_FENCED: Final = int(ErrorCode.FENCED_LEADER_EPOCH)
_FETCHING: Final = FetchStage.FETCHING


class FetcherState:
    """All partitions that one fetcher copies from one leader. Belongs to the event loop."""

    def __init__(
        self,
        settings: ReplicationSettings,
        *,
        node_id: BrokerId,
        broker_epoch: Callable[[], int],
        woken: Callable[[], None],
    ) -> None:
        """`woken` is called when there may be something else to ask, unless that follows from an answer."""
        self._settings = settings
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._woken = woken
        self._followed: dict[Key, FollowedPartition] = {}
        self._session = FollowerSession()
        self._out_of_range = OutOfRangeFollowers()
        self._settling: set[FollowedPartition] = set()
        self._retries = Retries()
        self.bytes_in = 0
        """Bytes of records that were appended."""
        self.writes_begun = 0
        """Answers whose records are written in another thread."""

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def followed(self) -> Iterator[FollowedPartition]:
        """All of them, whatever their stage is."""
        return iter(self._followed.values())

    @property
    def is_writing(self) -> bool:
        """True while writes are under way that partitions wait for."""
        return bool(self._settling)

    @property
    def has_news(self) -> bool:
        """True if the next request would say something that the leader does not know."""
        return self._session.has_news or bool(self._out_of_range)

    # Following the metadata

    def follow(self, partition: Partition) -> None:
        """Copy this partition from now on, in its present leader epoch."""
        followed = FollowedPartition(partition)
        known = self._followed.get(followed.key)
        if known is not None:
            is_same = known.partition is partition and known.leader_epoch == partition.leader_epoch
            if is_same and known.stage is not FetchStage.FAILED:
                return
            self._drop(known)
        self._followed[followed.key] = followed
        if partition.log.has_pending_appends:
            self._settling.add(followed)
            partition.writer.call_behind(lambda: self._settled(followed))
        else:
            self._start(followed)
        self._woken()

    def leave(self, key: Key) -> None:
        """Do not copy this partition any more."""
        known = self._followed.pop(key, None)
        if known is not None:
            self._drop(known)

    def _drop(self, followed: FollowedPartition) -> None:
        followed.stage = FetchStage.FAILED
        self._session.left(followed.key)
        self._out_of_range.leave(followed.key)
        self._settling.discard(followed)

    def _settled(self, followed: FollowedPartition) -> None:
        if self._is_current(followed):
            self._settling.discard(followed)
            self._start(followed)
            self._woken()

    def _is_current(self, followed: FollowedPartition) -> bool:
        return self._followed.get(followed.key) is followed

    def _start(self, followed: FollowedPartition) -> None:
        log = followed.partition.log
        try:
            if log.epochs.latest is None:
                log.truncate_to(log.high_watermark)  # nothing says which leader the records above are from
            followed.start_at_end()
        except StrandlineError as error:
            self._fail(followed, str(error))
        else:
            self._session.changed(followed)

    # Asking

    def next_due(self) -> float | None:
        """When a partition is asked for again after an error."""
        return self._retries.next_due()

    def next_request(self, now: float) -> FollowerFetch | OffsetQuestion | None:
        """What to ask next; None if there is nothing to ask for."""
        for followed in self._retries.take_due(now):
            self._ask_again(followed)
        if self._out_of_range:
            return self._out_of_range.question()
        session, settings = self._session, self._settings
        wait_ms = self._longest_wait_ms(now)
        if session.is_new:
            if not session.is_refused:
                wait_ms = 0  # without an answer the session has no id, and cannot go on if the request is given up
            entries = session.begin(self._followed.values(), settings.replica_fetch_max_bytes)
            gone: Sequence[Key] = ()
            if not entries:
                return None
        else:
            news = session.update(settings.replica_fetch_max_bytes)
            if news is None:
                return None
            entries, gone = news
        session_id, session_epoch = session.next_ids()
        return FollowerFetch(
            self._node_id,
            self._broker_epoch(),
            wait_ms,
            settings.replica_fetch_min_bytes,
            settings.replica_fetch_response_max_bytes,
            session_id,
            session_epoch,
            entries,
            gone,
        )

    def _ask_again(self, followed: FollowedPartition) -> None:
        if not self._is_current(followed):
            return
        if followed.stage is FetchStage.OUT_OF_RANGE:
            self._out_of_range.add(followed)
        elif followed.stage is _FETCHING:
            self._session.changed(followed)

    def _longest_wait_ms(self, now: float) -> int:
        """A request that waits for records holds up what has to be asked meanwhile."""
        wait_ms, due = self._settings.replica_fetch_wait_max_ms, self.next_due()
        if due is not None:
            wait_ms = min(wait_ms, max(int((due - now) * 1000), 0))
        return min(wait_ms, _SETTLING_WAIT_MS) if self._settling else wait_ms

    # Answers

    def answered(self, fetched: FetchedPartitions, frame: HeldFrame, now: float) -> StrandlineError | None:
        """The leader has answered the last request; the records of the answer lie in `frame`.

        Returns the error of the whole answer, after which the next request should wait.
        """
        code = fetched.error_code
        if code:
            return self._refused_wholly(code)
        diverging: list[tuple[FollowedPartition, tuple[int, int]]] = []
        for row in fetched.partitions:
            key = (row.topic_id, row.partition)
            followed, asked = self._followed.get(key), self._session.asked(key)
            if followed is None or asked is None or not followed.is_answered_by(asked):
                continue
            if row.error_code:
                self._refused(followed, row.error_code, now)
            elif row.diverging_epoch is not None:
                diverging.append((followed, row.diverging_epoch))
            else:
                self._take(followed, row, frame, now)
        for followed, leaders in diverging:
            self._cut(followed, leaders, now)
        self._session.answered(fetched.session_id)
        return None

    def lost(self) -> None:
        """The request under way will not be answered: nothing is known of what the leader has read."""
        self._session.restart()

    def _refused_wholly(self, code: int) -> StrandlineError | None:
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session.forgotten_by_leader()
            return None
        self._session.restart()
        if code == ErrorCode.INVALID_FETCH_SESSION_EPOCH:
            return None
        return StrandlineError(f"The leader answered Fetch with {_name_of(code)}.")

    def _refused(self, followed: FollowedPartition, code: int, now: float) -> None:
        if code == _OUT_OF_RANGE:
            followed.stage = FetchStage.OUT_OF_RANGE
            self._session.left(followed.key)
            if followed.attempts:
                self._retry_later(followed, _name_of(code), now)
            else:
                followed.attempts = 1  # the same answer again would not help
                self._out_of_range.add(followed)
        elif code == _FENCED:
            # Every change of leaders brings this, for the moment until the metadata arrives.
            self._fail(followed, f"epoch {followed.leader_epoch} is over, as its leader says", level=logging.INFO)
        else:
            self._retry_later(followed, _name_of(code), now)

    def _take(self, followed: FollowedPartition, row: FetchedPartition, frame: HeldFrame, now: float) -> None:
        partition = followed.partition
        log = partition.log
        if log.reserved_end != followed.fetch_offset:
            # Something else has changed the log: what was asked for does not continue it.
            self._retry_later(followed, f"the log ends at {log.reserved_end}, not at {followed.fetch_offset}", now)
            self._restart(followed)
            return
        is_longer = False
        try:
            if row.records is not None:
                copied = copy_records(
                    followed,
                    row.records,
                    frame,
                    lambda error: self._written(followed, row, error),
                    leader_log_start=row.log_start_offset,
                )
                self.bytes_in += copied.size
                if copied.size:
                    is_longer = True
                    followed.fetch_offset = copied.next_offset
                    followed.last_fetched_epoch = log.epochs.latest_begun
                if not copied.is_written:
                    followed.stage = FetchStage.SETTLING
                    self._session.left(followed.key)
                    self._settling.add(followed)
                    self.writes_begun += 1
                    return
                if copied.error is not None:
                    self._retry_later(followed, str(copied.error), now)
                    if not is_longer:
                        return
            follow_leader(partition, row, is_longer=is_longer)
        except StrandlineError as error:
            self._fail(followed, str(error))
            return
        self._learned(followed, row)

    def _written(self, followed: FollowedPartition, row: FetchedPartition, error: StrandlineError | None) -> None:
        """A large append of this follower has ended, whatever has become of the partition meanwhile."""
        if self._is_current(followed):
            self._settling.discard(followed)
            try:
                if error is not None:
                    raise error
                followed.stage = _FETCHING
                follow_leader(followed.partition, row, is_longer=False)
            except StrandlineError as failure:
                self._fail(followed, str(failure))
            else:
                self._learned(followed, row)
        self._woken()

    def _learned(self, followed: FollowedPartition, row: FetchedPartition) -> None:
        followed.lag = max(0, row.high_watermark - followed.fetch_offset)
        if followed.retry_at is None:
            followed.attempts = 0
            self._session.changed(followed)

    def _restart(self, followed: FollowedPartition) -> None:
        log = followed.partition.log
        if log.has_pending_appends:
            followed.stage = FetchStage.SETTLING
            self._settling.add(followed)
            followed.partition.writer.call_behind(lambda: self._settled(followed))
        else:
            followed.start_at_end()

    # Cutting

    def _cut(self, followed: FollowedPartition, leaders: tuple[int, int], now: float) -> None:
        """The own log has something that the leader's has not: cut it off."""
        log = followed.partition.log
        before = followed.fetch_offset, followed.last_fetched_epoch
        try:
            end = end_in_common(
                leaders, log.end_offset_for_epoch, log_end=log.log_end_offset, high_watermark=log.high_watermark
            )
            if end < log.high_watermark:
                logger.warning(
                    "%s is cut at %d, below its high watermark %d: broker %d, which leads it in epoch %d, has only "
                    "offsets up to %d of epoch %d",
                    followed.partition.topic_partition,
                    end,
                    log.high_watermark,
                    followed.leader,
                    followed.leader_epoch,
                    leaders[1],
                    leaders[0],
                )
            log.truncate_to(end)
            followed.start_at_end()
        except StrandlineError as error:
            self._fail(followed, str(error))
            return
        self._session.changed(followed)
        if before == (followed.fetch_offset, followed.last_fetched_epoch):
            self._retry_later(followed, f"its leader names epoch {leaders[0]}, which does not help", now)

    def offsets_answered(self, question: OffsetQuestion, answers: Sequence[OffsetAnswer], now: float) -> None:
        """The leader has said where its logs end or start."""
        for followed, move, offset in self._out_of_range.answered(question, answers):
            if move is RangeMove.ASK_AGAIN:
                if offset == _FENCED:
                    self._refused(followed, offset, now)
                else:
                    self._retry_later(followed, f"ListOffsets: {_name_of(offset)}", now)
                continue
            log, name = followed.partition.log, followed.partition.topic_partition
            try:
                if move is RangeMove.CUT:
                    logger.warning("%s is cut at %d, where the log of its leader ends", name, offset)
                    log.truncate_to(offset)
                elif move is RangeMove.START_AGAIN:
                    logger.warning("%s goes on at %d, where the log of its leader starts", name, offset)
                    log.truncate_fully_and_start_at(offset)
                followed.start_at_end()
            except StrandlineError as error:
                self._fail(followed, str(error))
            else:
                self._session.changed(followed)

    # Errors of partitions: none of them stops the others

    def _retry_later(self, followed: FollowedPartition, why: str, now: float) -> None:
        self._retries.add(followed, now, most=self._settings.replica_fetch_backoff_ms / 1000)
        self._session.left(followed.key)
        log = logger.warning if followed.attempts == _LOGGED_ATTEMPT else logger.debug
        log("%s cannot be copied from broker %d: %s", followed.partition.topic_partition, followed.leader, why)

    def _fail(self, followed: FollowedPartition, why: str, *, level: int = logging.ERROR) -> None:
        followed.stage, followed.why_failed = FetchStage.FAILED, why
        self._session.left(followed.key)
        logger.log(
            level,
            "%s is not copied from broker %d until its metadata changes: %s",
            followed.partition.topic_partition,
            followed.leader,
            why,
        )


def _name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"the unknown error {code}"
