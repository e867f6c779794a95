"""ShareAcknowledge 1-2: a member of a share group says what became of records. Version 2 may renew locks.

A request that ends the share session (epoch -1) gives back what the member has not acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.coordinators.share_states import check_share_groups
from strandline.errors import StrandlineError
from strandline.metadata import Images
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.handlers.share.acknowledgements import (
    KnownLeader,
    Outcomes,
    acknowledge_all,
    acknowledged,
    leader_of,
    session_key,
)
from strandline.share_delivery.partitions import SharePartitions
from strandline.share_delivery.sessions import LAST_EPOCH
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class ShareAcknowledgeHandler:
    """Serves members of share groups that are through with records."""

    def __init__(self, shares: SharePartitions, images: Images) -> None:
        self._shares, self._images = shares, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.SHARE_ACKNOWLEDGE: self.share_acknowledge}

    async def share_acknowledge(
        self, request: ShareAcknowledgeRequest, context: RequestContext
    ) -> ShareAcknowledgeResponse:
        try:
            check_share_groups(self._images.image)
            key = session_key(request.group_id, request.member_id)
            session = self._shares.sessions.advance(key, request.share_session_epoch)
        except StrandlineError as error:
            code, message = outcome(error)
            return ShareAcknowledgeResponse(error_code=code, error_message=message)
        outcomes = await acknowledge_all(
            self._shares,
            key,
            acknowledged(request.topics),
            version=context.api_version,
            is_renewal=request.is_renew_ack,
        )
        if request.share_session_epoch == LAST_EPOCH:
            self._shares.end_session(session)
        return self._response(key.group_id, outcomes, context)

    def _response(self, group_id: str, outcomes: Outcomes, context: RequestContext) -> ShareAcknowledgeResponse:
        topics: dict[object, ShareAcknowledgeTopicResponse] = {}
        leaders: dict[int, KnownLeader] = {}
        for place, error in outcomes.items():
            code, message = outcome(error)
            data = PartitionData(partition_index=place[1], error_code=code, error_message=message)
            if code in _ELSEWHERE:
                leader = leader_of(self._images, place, context.listener)
                data.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
                if leader.host:
                    leaders[leader.leader_id] = leader
            topics.setdefault(place[0], ShareAcknowledgeTopicResponse(topic_id=place[0])).partitions.append(data)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=self._shares.config_of(group_id).share_record_lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                NodeEndpoint(node_id=node_id, host=leader.host, port=leader.port, rack=leader.rack)
                for node_id, leader in leaders.items()
            ],
        )
