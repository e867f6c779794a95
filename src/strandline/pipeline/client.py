"""The tiering API as the pipeline calls it: finds the broker to ask, and goes on when brokers come and go.

Every request may be repeated, so that one without an answer is sent again: to the same broker, to another, or to the
new leader of the partition. What is refused is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from strandline.client import CommandFailed, HttpRefused, HttpUnreachable, Json
from strandline.client.http import exchange
from strandline.clock import Clock, SystemClock
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import (
    API_VERSION,
    AbortSegment,
    BeginSegment,
    BegunSegment,
    ClaimedFiles,
    ClaimFiles,
    ClusterDescription,
    CommitSegment,
    CommittedSegment,
    ListMerges,
    ListTriggers,
    MergeRanges,
    PlanRead,
    ReadPlan,
    RecordedSplits,
    RecordSplits,
    ReleaseFiles,
    RenewClaims,
    RenewedClaims,
    TieringStatus,
    Triggers,
)
from strandline.errors import InvalidRequest
from strandline.model import TopicPartition
from strandline.pipeline.brokers import BrokerBook, BrokersUnavailable, RequestRefused
from strandline.wire.errors import ErrorCode

__all__ = ["BrokersUnavailable", "RequestRefused", "TieringClient"]

A = TypeVar("A")
_API: Final = f"/tiering/v{API_VERSION}"
_MISDIRECTED: Final = 421
_NOT_FOUND: Final = 404
_BROKEN: Final = 500
PATIENCE_SECONDS: Final = 60.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_LONGEST_REQUEST_S: Final = 30.0


class TieringClient:
    """The brokers of one cluster. Blocking; several threads may share it.

    All methods raise BrokersUnavailable when no broker has answered for `timeout_s` seconds, and RequestRefused.
    """

    def __init__(self, bootstrap: str, *, timeout_s: float = PATIENCE_SECONDS, clock: Clock | None = None) -> None:
        """`bootstrap`: host:port of one or more brokers, separated by commas. Connects when it is first used."""
        self._brokers = BrokerBook(bootstrap)
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._closed = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is asked: threads that wait for a broker give up at once."""
        self._closed.set()
        self._brokers.close()

    # The cluster

    def describe(self) -> ClusterDescription:
        """Which cluster this is, and how to reach its stores."""
        return self._read(ClusterDescription, self._anybody("describe", None, what="describe the cluster"))

    # Splitting

    def claim_files(self, request: ClaimFiles) -> ClaimedFiles:
        """See `ClaimFiles`; likewise the others."""
        return self._read(ClaimedFiles, self._anybody("claim-files", request, what="claim WAL objects"))

    def record_splits(self, request: RecordSplits) -> RecordedSplits:
        found = self._anybody("record-splits", request, what="record split files")
        return self._read(RecordedSplits, found)

    def release_files(self, request: ReleaseFiles) -> None:
        self._anybody("release-files", request, what="release WAL objects")

    def renew_claims(self, request: RenewClaims) -> RenewedClaims:
        return self._read(RenewedClaims, self._anybody("renew-claims", request, what="renew claims"))

    def list_triggers(self, request: ListTriggers) -> Triggers:
        return self._read(Triggers, self._anybody("list-triggers", request, what="list triggered topics"))

    # Merging

    def list_merges(self, request: ListMerges) -> MergeRanges:
        return self._read(MergeRanges, self._anybody("list-merges", request, what="list what can be merged"))

    def begin_segment(self, request: BeginSegment) -> BegunSegment:
        where = request.partition.topic_partition
        found = self._leader("begin-segment", request, where, what=f"begin a segment of {where}")
        return self._read(BegunSegment, found)

    def commit_segment(self, request: CommitSegment) -> CommittedSegment:
        where = request.partition.topic_partition
        found = self._leader("commit-segment", request, where, what=f"commit a segment of {where}")
        return self._read(CommittedSegment, found)

    def abort_segment(self, request: AbortSegment) -> None:
        where = request.partition.topic_partition
        self._leader("abort-segment", request, where, what=f"abort a segment of {where}")

    # Reading

    def plan_read(self, request: PlanRead) -> ReadPlan:
        where = TopicPartition(request.topic, request.partition)
        return self._read(ReadPlan, self._leader("plan-read", request, where, what=f"plan a read of {where}"))

    # Topics

    def statuses(self, topics: Iterable[str] = ()) -> tuple[TieringStatus, ...]:
        """How far topics are converted; all diskless ones if none is named."""
        names = tuple(topics)
        if not names:
            found = self._ask("/tiering", None, self._brokers.anybody, what="say how far topics are")
            return tuple(self._read(TieringStatus, one) for one in found["topics"])
        return tuple(self._topic(name, "", None, what=f"say how far {name} is") for name in names)

    def pause(self, topic: str) -> TieringStatus:
        """Split nothing of a topic and begin no segment of it until it is resumed. What is under way is finished."""
        return self._topic(topic, "/pause", {}, what=f"pause the conversion of {topic}")

    def resume(self, topic: str) -> TieringStatus:
        """Take `pause` back."""
        return self._topic(topic, "/resume", {}, what=f"resume the conversion of {topic}")

    def trigger(self, topic: str) -> TieringStatus:
        """Let everything that is written by now be converted, whatever its age."""
        return self._topic(topic, "/trigger", {}, what=f"trigger the conversion of {topic}")

    def _topic(self, topic: str, action: str, body: Json | None, *, what: str) -> TieringStatus:
        path = f"/topics/{quote(topic, safe='')}/tiering{action}"
        return self._read(TieringStatus, self._ask(path, body, self._brokers.anybody, what=what))

    # How

    def _anybody(self, method: str, request: object, *, what: str) -> Json:
        return self._ask(f"{_API}/{method}", _body(request), self._brokers.anybody, what=what)

    def _leader(self, method: str, request: object, where: TopicPartition, *, what: str) -> Json:
        return self._ask(f"{_API}/{method}", _body(request), lambda: self._brokers.leader(*where), what=what)

    def _read(self, kind: type[A], document: Any) -> A:
        try:
            return decode(kind, document)
        except InvalidRequest as error:
            raise RequestRefused(
                f"A broker answered what this version does not understand: {error} Use the same version of Strandline "
                "here and on the brokers.",
                ErrorCode.UNSUPPORTED_VERSION.name,
            ) from error

    def _ask(self, path: str, body: Json | None, whom: Callable[[], int], *, what: str) -> Json:
        deadline = self._clock.monotonic() + self._timeout_s
        pause = _FIRST_PAUSE_S
        told: CommandFailed | None = None
        while True:
            try:
                return self._ask_once(path, body, whom, deadline, what=what)
            except RequestRefused:
                raise
            except CommandFailed as failure:
                # The last attempt may have too little time for an answer: what was heard before says more.
                told = failure if told is None or not isinstance(failure.__cause__, TimeoutError) else told
                left = deadline - self._clock.monotonic()
                if left <= 0 or self._closed.is_set():
                    sentence = f"No broker could {what} within {self._timeout_s:g} s: {told}"
                    raise BrokersUnavailable(sentence) from failure
                self._closed.wait(min(pause, left))
                pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _ask_once(self, path: str, body: Json | None, whom: Callable[[], int], deadline: float, *, what: str) -> Json:
        """One attempt. Raises RequestRefused, and CommandFailed if another attempt may succeed."""
        node_id = whom()
        address = self._brokers.http_address(node_id, what=what)
        patience = min(_LONGEST_REQUEST_S, max(1.0, deadline - self._clock.monotonic()))
        try:
            return exchange(node_id, address, path, body, what=what, timeout_s=patience)
        except HttpUnreachable:
            self._brokers.lost(node_id)
            raise
        except HttpRefused as error:
            if error.status == _MISDIRECTED:
                self._brokers.forget_leaders()
                raise
            if error.status >= _BROKEN:
                self._brokers.passed_over(node_id)
                raise
            raise _refused(node_id, error) from error


def _body(request: object) -> Json:
    return {} if request is None else dict(encode(request))


def _refused(node_id: int, error: HttpRefused) -> RequestRefused:
    if error.status == _NOT_FOUND and not error.code:
        return RequestRefused(
            f"Broker {node_id} does not know version {API_VERSION} of the tiering API. Use the same version of "
            "Strandline here and on the brokers.",
            ErrorCode.UNSUPPORTED_VERSION.name,
        )
    return RequestRefused(error.reason, error.code)
