"""ShareFetch 1-2: records for a member of a share group, each of them locked for it until it is acknowledged.

Share sessions, acknowledgements along with the fetch, long polls. Version 2 renews locks and may limit records strictly
(`share_acquire_mode`). Records leave as whole batches; `acquired_records` says which of them the member has got. How
one request is served is in `poll`. Known gaps: no quotas; records are copied on their way.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.clock import Clock
from strandline.coordinators.share_states import check_share_groups
from strandline.errors import InvalidRequest, StrandlineError
from strandline.metadata import Images
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import CurrentSettings, outcome
from strandline.server.handlers.share.acknowledgements import (
    KNOWS_RENEWAL,
    KnownLeader,
    Outcomes,
    acknowledge_all,
    acknowledged,
    leader_of,
    session_key,
)
from strandline.server.handlers.share.poll import Shared, SharePoll
from strandline.server.handlers.share.slow_reads import SlowShareReads
from strandline.server.memory import AnswerMemory
from strandline.share_delivery.partitions import SharePartitions
from strandline.share_delivery.sessions import LAST_EPOCH, SharePlace, ShareSession
from strandline.share_errors import ShareSessionLimitReached
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_NOTHING = Shared()


class ShareFetchHandler:
    """Serves members of share groups."""

    def __init__(
        self,
        shares: SharePartitions,
        images: Images,
        settings: CurrentSettings,
        *,
        memory: AnswerMemory,
        clock: Clock,
    ) -> None:
        self._shares, self._images, self._settings = shares, images, settings
        self._memory, self._clock = memory, clock
        self._slow_reads = SlowShareReads(shares, memory, clock)

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.SHARE_FETCH: self.share_fetch}

    async def share_fetch(self, request: ShareFetchRequest, context: RequestContext) -> ShareFetchResponse:
        is_renewal = context.api_version >= KNOWS_RENEWAL and request.is_renew_ack
        said = acknowledged(request.topics)
        try:
            check_share_groups(self._images.image)
            if is_renewal:
                _check_renewal(request)
            session = self._open(request, context, has_acknowledgements=bool(said))
        except StrandlineError as error:
            if isinstance(error, ShareSessionLimitReached):
                # As in Kafka: a client that asks again and again is slowed down.
                await self._clock.sleep(request.max_wait_ms / 1000)
            code, message = outcome(error)
            return ShareFetchResponse(error_code=code, error_message=message)
        outcomes = await acknowledge_all(
            self._shares, session.key, said, version=context.api_version, is_renewal=is_renewal
        )
        found: dict[SharePlace, Shared] = {}
        if request.share_session_epoch == LAST_EPOCH:
            self._shares.end_session(session)
        elif not is_renewal:
            found = await self._poll(session, request).run()
        return self._response(session, found, outcomes, request, context)

    def _open(self, request: ShareFetchRequest, context: RequestContext, *, has_acknowledgements: bool) -> ShareSession:
        return self._shares.sessions.open(
            session_key(request.group_id, request.member_id),
            request.share_session_epoch,
            added=((topic.topic_id, one.partition_index) for topic in request.topics for one in topic.partitions),
            forgotten=((topic.topic_id, one) for topic in request.forgotten_topics_data for one in topic.partitions),
            has_acknowledgements=has_acknowledgements,
            connection_id=context.connection_id,
        )

    def _poll(self, session: ShareSession, request: ShareFetchRequest) -> SharePoll:
        return SharePoll(
            self._shares,
            session,
            request,
            clock=self._clock,
            memory=self._memory,
            slow_reads=self._slow_reads,
            max_bytes=self._settings().network.fetch_max_bytes,
        )

    # Answering

    def _response(
        self,
        session: ShareSession,
        found: Mapping[SharePlace, Shared],
        outcomes: Outcomes,
        request: ShareFetchRequest,
        context: RequestContext,
    ) -> ShareFetchResponse:
        topics: dict[object, ShareFetchableTopicResponse] = {}
        leaders: dict[int, KnownLeader] = {}
        is_fetch = request.share_session_epoch != LAST_EPOCH and not request.is_renew_ack
        places = _to_answer(session, found) if is_fetch else []
        for place in dict.fromkeys([*places, *outcomes]):
            data = _partition_data(place, found.get(place, _NOTHING), outcomes.get(place))
            if data.error_code in _ELSEWHERE or data.acknowledge_error_code in _ELSEWHERE:
                leader = leader_of(self._images, place, context.listener)
                data.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
                if leader.host:
                    leaders[leader.leader_id] = leader
            topics.setdefault(place[0], ShareFetchableTopicResponse(topic_id=place[0])).partitions.append(data)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._shares.config_of(session.key.group_id).share_record_lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                NodeEndpoint(node_id=node_id, host=leader.host, port=leader.port, rack=leader.rack)
                for node_id, leader in leaders.items()
            ],
        )


def _check_renewal(request: ShareFetchRequest) -> None:
    for name in ("max_bytes", "min_bytes", "max_records", "max_wait_ms"):
        if getattr(request, name):
            raise InvalidRequest(f"A ShareFetch that renews locks fetches nothing: {name} must be 0.")


def _to_answer(session: ShareSession, found: Mapping[SharePlace, Shared]) -> list[SharePlace]:
    """The partitions that the answer names: with records, an error, or a change of that. Those with records are
    served last the next time."""
    named = [place for place, is_due in session.places.items() if is_due or place in found]
    for place in named:
        shared = found.get(place, _NOTHING)
        if shared.acquired:
            del session.places[place]
        session.places[place] = shared.error is not None
    return named


def _partition_data(place: SharePlace, shared: Shared, acknowledge_error: StrandlineError | None) -> PartitionData:
    code, message = outcome(shared.error)
    acknowledge_code, acknowledge_message = outcome(acknowledge_error)
    return PartitionData(
        partition_index=place[1],
        error_code=code,
        error_message=message,
        acknowledge_error_code=acknowledge_code,
        acknowledge_error_message=acknowledge_message,
        records=shared.records,
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in shared.acquired
        ],
    )
