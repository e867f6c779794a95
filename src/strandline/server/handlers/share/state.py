"""InitializeShareGroupState 0, ReadShareGroupState 0, WriteShareGroupState 0-1, DeleteShareGroupState 0 and
ReadShareGroupStateSummary 0-1: what leaders of partitions and coordinators of groups ask the share coordinator.

Each partition gets its own answer. As in Kafka, a request without a group, or with a topic without partitions, gets an
answer without results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from strandline.coordinators.share_states import DeliveryBatch, ShareCoordinator, SharePartitionKey, ShareStateUpdate
from strandline.errors import InvalidRequest, StrandlineError
from strandline.model import NO_EPOCH, NO_OFFSET
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, outcome
from strandline.server.share_states.states import delivery_state
from strandline.wire.api import ApiKey
from strandline.wire.messages import delete_share_group_state as deletion
from strandline.wire.messages import initialize_share_group_state as beginning
from strandline.wire.messages import read_share_group_state as reading
from strandline.wire.messages import read_share_group_state_summary as summing
from strandline.wire.messages import write_share_group_state as writing


@dataclass(frozen=True, slots=True)
class _Answers:
    """How an answer is put together: the classes of its messages, which differ only in their fields."""

    whole: Callable[..., Any]
    topic: Callable[..., Any]
    partition: Callable[..., Any]
    """With the fields that an answer with an error has."""


_INITIALIZED = _Answers(
    beginning.InitializeShareGroupStateResponse, beginning.InitializeStateResult, beginning.PartitionResult
)
_READ = _Answers(
    reading.ReadShareGroupStateResponse,
    reading.ReadStateResult,
    partial(reading.PartitionResult, start_offset=NO_OFFSET),
)
_WRITTEN = _Answers(writing.WriteShareGroupStateResponse, writing.WriteStateResult, writing.PartitionResult)
_DELETED = _Answers(deletion.DeleteShareGroupStateResponse, deletion.DeleteStateResult, deletion.PartitionResult)
_SUMMED = _Answers(
    summing.ReadShareGroupStateSummaryResponse,
    summing.ReadStateSummaryResult,
    partial(summing.PartitionResult, leader_epoch=NO_EPOCH, start_offset=NO_OFFSET),
)


class ShareStateHandler:
    """Answers for the share partitions that this broker coordinates."""

    def __init__(self, shares: ShareCoordinator) -> None:
        self._shares = shares

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.INITIALIZE_SHARE_GROUP_STATE: partial(_serve, self._initialize, _INITIALIZED),
            ApiKey.READ_SHARE_GROUP_STATE: partial(_serve, self._read, _READ),
            ApiKey.WRITE_SHARE_GROUP_STATE: partial(_serve, self._write, _WRITTEN),
            ApiKey.DELETE_SHARE_GROUP_STATE: partial(_serve, self._delete, _DELETED),
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: partial(_serve, self._sum_up, _SUMMED),
        }

    async def _initialize(
        self, key: SharePartitionKey, asked: beginning.PartitionData, broker: str
    ) -> Mapping[str, Any]:
        await self._shares.initialize(key, state_epoch=asked.state_epoch, start_offset=asked.start_offset)
        return {}

    async def _read(self, key: SharePartitionKey, asked: reading.PartitionData, broker: str) -> Mapping[str, Any]:
        state = await self._shares.read(key, leader_epoch=asked.leader_epoch, broker=broker)
        batches = [
            reading.StateBatch(first_offset=first, last_offset=last, delivery_state=kind, delivery_count=count)
            for first, last, kind, count in state.batches
        ]
        return {"state_epoch": state.state_epoch, "start_offset": state.start_offset, "state_batches": batches}

    async def _write(self, key: SharePartitionKey, asked: writing.PartitionData, broker: str) -> Mapping[str, Any]:
        update = ShareStateUpdate(
            state_epoch=asked.state_epoch,
            leader_epoch=asked.leader_epoch,
            start_offset=asked.start_offset,
            delivery_complete_count=asked.delivery_complete_count,
            batches=tuple(map(_batch, asked.state_batches)),
        )
        await self._shares.write(key, update, broker=broker)
        return {}

    async def _delete(self, key: SharePartitionKey, asked: deletion.PartitionData, broker: str) -> Mapping[str, Any]:
        await self._shares.delete(key)
        return {}

    async def _sum_up(self, key: SharePartitionKey, asked: summing.PartitionData, broker: str) -> Mapping[str, Any]:
        return (await self._shares.summary(key))._asdict()


async def _serve(
    one: Callable[[SharePartitionKey, Any, str], Awaitable[Mapping[str, Any]]],
    answers: _Answers,
    request: Any,
    context: RequestContext,
) -> Any:
    """Ask `one` for the fields of each partition, all at once."""
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return answers.whole()

    async def answer(topic_id: UUID, asked: Any) -> Any:
        try:
            if asked.partition < 0:
                raise InvalidRequest(f"A partition cannot have the number {asked.partition}.")
            key = SharePartitionKey(request.group_id, topic_id, asked.partition)
            fields = await one(key, asked, context.client_id or "")
        except StrandlineError as error:
            code, message = outcome(error)
            return answers.partition(partition=asked.partition, error_code=code, error_message=message)
        return answers.partition(partition=asked.partition, **fields)

    found = iter(await each(answer(topic.topic_id, asked) for topic in request.topics for asked in topic.partitions))
    return answers.whole(
        results=[
            answers.topic(topic_id=topic.topic_id, partitions=[next(found) for _ in topic.partitions])
            for topic in request.topics
        ]
    )


def _batch(batch: writing.StateBatch) -> DeliveryBatch:
    if not 0 <= batch.first_offset <= batch.last_offset:
        raise InvalidRequest(f"Offsets {batch.first_offset} to {batch.last_offset} are not a batch.")
    return DeliveryBatch(
        batch.first_offset, batch.last_offset, delivery_state(batch.delivery_state), batch.delivery_count
    )
