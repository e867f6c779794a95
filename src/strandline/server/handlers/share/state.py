"""InitializeShareGroupState 0, ReadShareGroupState 0, WriteShareGroupState 0-1, DeleteShareGroupState 0 and
ReadShareGroupStateSummary 0-1: what leaders of partitions and coordinators of groups ask the share coordinator.

Each partition gets its own answer. As in Kafka, a request without a group, or with a topic without partitions, gets an
answer without results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from strandline.coordinators.share import DeliveryBatch, ShareCoordinator, SharePartitionKey, ShareStateUpdate
from strandline.errors import InvalidRequest, StrandlineError
from strandline.model import NO_EPOCH, NO_OFFSET
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, outcome
from strandline.server.sharing.states import delivery_state
from strandline.wire.api import ApiKey
from strandline.wire.messages import delete_share_group_state as deletion
from strandline.wire.messages import initialize_share_group_state as beginning
from strandline.wire.messages import read_share_group_state as reading
from strandline.wire.messages import read_share_group_state_summary as summing
from strandline.wire.messages import write_share_group_state as writing


class ShareStateHandler:
    """Answers for the share partitions that this broker coordinates."""

    def __init__(self, shares: ShareCoordinator) -> None:
        self._shares = shares

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.INITIALIZE_SHARE_GROUP_STATE: self.initialize,
            ApiKey.READ_SHARE_GROUP_STATE: self.read,
            ApiKey.WRITE_SHARE_GROUP_STATE: self.write,
            ApiKey.DELETE_SHARE_GROUP_STATE: self.delete,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: self.summary,
        }

    async def initialize(
        self, request: beginning.InitializeShareGroupStateRequest, context: RequestContext
    ) -> beginning.InitializeShareGroupStateResponse:
        async def one(key: SharePartitionKey, asked: beginning.PartitionData) -> None:
            await self._shares.initialize(key, state_epoch=asked.state_epoch, start_offset=asked.start_offset)

        results = [
            beginning.InitializeStateResult(
                topic_id=topic_id,
                partitions=[
                    beginning.PartitionResult(partition=number, error_code=code, error_message=message)
                    for number, code, message, _ in partitions
                ],
            )
            for topic_id, partitions in await _answers(request, one)
        ]
        return beginning.InitializeShareGroupStateResponse(results=results)

    async def read(
        self, request: reading.ReadShareGroupStateRequest, context: RequestContext
    ) -> reading.ReadShareGroupStateResponse:
        async def one(key: SharePartitionKey, asked: reading.PartitionData) -> reading.PartitionResult:
            state = await self._shares.read(key, leader_epoch=asked.leader_epoch)
            return reading.PartitionResult(
                partition=key.partition,
                state_epoch=state.state_epoch,
                start_offset=state.start_offset,
                state_batches=[
                    reading.StateBatch(first_offset=first, last_offset=last, delivery_state=kind, delivery_count=count)
                    for first, last, kind, count in state.batches
                ],
            )

        results = [
            reading.ReadStateResult(
                topic_id=topic_id,
                partitions=[
                    found
                    or reading.PartitionResult(
                        partition=number, error_code=code, error_message=message, start_offset=NO_OFFSET
                    )
                    for number, code, message, found in partitions
                ],
            )
            for topic_id, partitions in await _answers(request, one)
        ]
        return reading.ReadShareGroupStateResponse(results=results)

    async def write(
        self, request: writing.WriteShareGroupStateRequest, context: RequestContext
    ) -> writing.WriteShareGroupStateResponse:
        async def one(key: SharePartitionKey, asked: writing.PartitionData) -> None:
            update = ShareStateUpdate(
                state_epoch=asked.state_epoch,
                leader_epoch=asked.leader_epoch,
                start_offset=asked.start_offset,
                delivery_complete_count=asked.delivery_complete_count,
                batches=tuple(map(_batch, asked.state_batches)),
            )
            await self._shares.write(key, update)

        results = [
            writing.WriteStateResult(
                topic_id=topic_id,
                partitions=[
                    writing.PartitionResult(partition=number, error_code=code, error_message=message)
                    for number, code, message, _ in partitions
                ],
            )
            for topic_id, partitions in await _answers(request, one)
        ]
        return writing.WriteShareGroupStateResponse(results=results)

    async def delete(
        self, request: deletion.DeleteShareGroupStateRequest, context: RequestContext
    ) -> deletion.DeleteShareGroupStateResponse:
        async def one(key: SharePartitionKey, asked: deletion.PartitionData) -> None:
            await self._shares.delete(key)

        results = [
            deletion.DeleteStateResult(
                topic_id=topic_id,
                partitions=[
                    deletion.PartitionResult(partition=number, error_code=code, error_message=message)
                    for number, code, message, _ in partitions
                ],
            )
            for topic_id, partitions in await _answers(request, one)
        ]
        return deletion.DeleteShareGroupStateResponse(results=results)

    async def summary(
        self, request: summing.ReadShareGroupStateSummaryRequest, context: RequestContext
    ) -> summing.ReadShareGroupStateSummaryResponse:
        async def one(key: SharePartitionKey, asked: summing.PartitionData) -> summing.PartitionResult:
            found = await self._shares.summary(key)
            return summing.PartitionResult(
                partition=key.partition,
                state_epoch=found.state_epoch,
                leader_epoch=found.leader_epoch,
                start_offset=found.start_offset,
                delivery_complete_count=found.delivery_complete_count,
            )

        results = [
            summing.ReadStateSummaryResult(
                topic_id=topic_id,
                partitions=[
                    found
                    or summing.PartitionResult(
                        partition=number,
                        error_code=code,
                        error_message=message,
                        leader_epoch=NO_EPOCH,
                        start_offset=NO_OFFSET,
                    )
                    for number, code, message, found in partitions
                ],
            )
            for topic_id, partitions in await _answers(request, one)
        ]
        return summing.ReadShareGroupStateSummaryResponse(results=results)


async def _answers(
    request: Any, one: Callable[[SharePartitionKey, Any], Awaitable[Any]]
) -> list[tuple[Any, list[Any]]]:
    """For each topic id, each partition with its error code and message, and what was found. All are asked at once."""
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return []

    async def answer(topic_id: Any, asked: Any) -> tuple[int, int, str | None, Any]:
        try:
            if asked.partition < 0:
                raise InvalidRequest(f"A partition cannot have the number {asked.partition}.")
            found = await one(SharePartitionKey(request.group_id, topic_id, asked.partition), asked)
        except StrandlineError as error:
            return asked.partition, *outcome(error), None
        return asked.partition, *outcome(None), found

    found = iter(await each(answer(topic.topic_id, asked) for topic in request.topics for asked in topic.partitions))
    return [(topic.topic_id, [next(found) for _ in topic.partitions]) for topic in request.topics]


def _batch(batch: writing.StateBatch) -> DeliveryBatch:
    if not 0 <= batch.first_offset <= batch.last_offset:
        raise InvalidRequest(f"Offsets {batch.first_offset} to {batch.last_offset} are not a batch.")
    return DeliveryBatch(
        batch.first_offset, batch.last_offset, delivery_state(batch.delivery_state), batch.delivery_count
    )
