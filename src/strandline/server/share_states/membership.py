"""What the group coordinator asks of the share coordinator, by group, topic and partition."""

from __future__ import annotations

from uuid import UUID

from strandline.coordinators.groups.share.states import ShareProgress
from strandline.coordinators.share_states import ShareGroupStates, SharePartitionKey
from strandline.errors import UnknownTopicOrPartition


class StatesOfGroups:
    """`ShareStates` over the state of share partitions."""

    def __init__(self, states: ShareGroupStates) -> None:
        self._states = states

    async def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> None:
        key = SharePartitionKey(group_id, topic_id, partition)
        await self._states.initialize(key, state_epoch=state_epoch, start_offset=start_offset)

    async def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        try:
            await self._states.delete(SharePartitionKey(group_id, topic_id, partition))
        except UnknownTopicOrPartition:
            return  # the share coordinator forgets the states of deleted topics by itself

    async def summary(self, group_id: str, topic_id: UUID, partition: int) -> ShareProgress:
        found = await self._states.summary(SharePartitionKey(group_id, topic_id, partition))
        return ShareProgress(
            start_offset=found.start_offset,
            leader_epoch=found.leader_epoch,
            delivery_complete_count=found.delivery_complete_count,
        )
