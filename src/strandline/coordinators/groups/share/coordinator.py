"""Requests about share groups: the group coordinator's decisions, and the share coordinator's state around them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from strandline.clock import Clock, within
from strandline.config.share_groups import ShareGroupSettings
from strandline.coordinators.groups.coordinator import GroupCoordinator
from strandline.coordinators.groups.modern.partitions import Partitions, gathered, reduced, sorted_pairs
from strandline.coordinators.groups.modern.values import DescribedModernGroup, HeartbeatResponse
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.offsets import OffsetAlteration, OffsetDeletion
from strandline.coordinators.groups.share.service import ShareHeartbeatOutcome
from strandline.coordinators.groups.share.states import ShareStates, StateCreation
from strandline.coordinators.groups.share.values import (
    NO_SHARE_OFFSET,
    AlteredShareOffset,
    DeletedShareOffsets,
    DescribedShareGroup,
    ShareHeartbeatRequest,
    ShareOffset,
)
from strandline.coordinators.runtime import client_error
from strandline.coordinators.share_states import check_share_groups
from strandline.crash import crash_point
from strandline.errors import InvalidGroupId, NonEmptyGroup, RequestTimedOut, StrandlineError
from strandline.metadata import Images
from strandline.model import TopicPartition
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RECORDED_EVERY_S: Final = 1.0
"""While state is created."""


class ShareLogEnds(Protocol):
    """Where logs end, whichever broker leads them."""

    async def end_offset(self, partition: TopicPartition) -> int:
        """The offset of the next record. Raises a StrandlineError if the leader does not say."""


class ShareGroupCoordinator:
    """Every request about share groups, for the groups whose partition this broker leads.

    Members never wait for the share coordinator: state is created in the background, and a member learns of its
    partitions in the first heartbeat after. Administrators do wait, as long as a creation may take.
    """

    def __init__(
        self,
        groups: GroupCoordinator,
        states: ShareStates,
        ends: ShareLogEnds,
        images: Images,
        *,
        clock: Clock,
        settings: ShareGroupSettings,
    ) -> None:
        self._groups, self._states, self._ends, self._images = groups, states, ends, images
        self._clock = clock
        self._patience = settings.group_share_initialize_retry_interval_ms / 1000
        self._creations = TaskSet()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ShareGroupCoordinator]:
        """Create state in the background inside the block. What is cut off at its end is begun again later."""
        try:
            yield self
        finally:
            await self._creations.close()

    # Members ----------------------------------------------------------------------------------------------------

    async def heartbeat(self, request: ShareHeartbeatRequest) -> HeartbeatResponse:
        """Answers when what was decided is in the log, or at once with an error."""
        try:
            check_share_groups(self._images.image)
            crash_point("share.group.before_heartbeat")
            shard = self._groups.runtime.shard_for(request.group_id)
            outcome: ShareHeartbeatOutcome = await self._groups.runtime.wait_written(
                lambda reply: shard.share.heartbeat(request, reply)
            )
        except StrandlineError as error:
            return HeartbeatResponse(error=error)
        crash_point("share.group.after_heartbeat")
        if outcome.creation is not None:
            name = f"state of share group {request.group_id}"
            self._creations.start(self._create_in_background(outcome.creation), name=name)
        return outcome.response

    async def _create_in_background(self, creation: StateCreation) -> None:
        try:
            await self._create(creation)
        except StrandlineError as error:
            logger.warning("share group %s: its state is not recorded yet: %s", creation.group_id, error)

    async def _create(self, creation: StateCreation) -> dict[tuple[UUID, int], StrandlineError]:
        """Create state and record it. Returns why partitions have none; raises if it could not be recorded."""
        async with self._turn_of(creation.group_id):
            if not creation.start_offsets:  # else an administrator wants it to begin anew
                group = self._groups.runtime.shard_for(creation.group_id).share.table.existing(creation.group_id)
                missing = reduced(creation.partitions, group.assignable)
                creation = replace(creation, partitions=missing)
            return await self._create_now(creation)

    async def _create_now(self, creation: StateCreation) -> dict[tuple[UUID, int], StrandlineError]:
        """What is there is recorded every second: members do not wait for partitions whose coordinator hangs."""
        crash_point("share.group.before_creation")
        group_id, epoch, start_offset = creation.group_id, creation.state_epoch, creation.start_offset
        calls = {
            asyncio.ensure_future(
                self._attempt(self._states.initialize(group_id, *one, epoch, start_offset(*one)))
            ): one
            for one in sorted_pairs(creation.partitions)
        }
        failures: dict[tuple[UUID, int], StrandlineError] = {}
        pending = set(calls)
        try:
            while pending:
                with suppress(TimeoutError):
                    await within(self._clock, _RECORDED_EVERY_S, asyncio.wait(pending))
                ended = {call for call in pending if call.done()}
                pending -= ended
                if ended:
                    results = {calls[call]: call.result() for call in ended}
                    failed = {one: error for one, error in results.items() if error is not None}
                    await self._record(group_id, gathered(results), failed)
                    failures |= failed
        finally:
            for call in pending:
                call.cancel()
        return failures

    async def _record(
        self, group_id: str, asked: Partitions, failures: Mapping[tuple[UUID, int], StrandlineError]
    ) -> None:
        """Write down which of these partitions have state now. Raises if that fails."""
        crash_point("share.group.after_creation")
        failed = gathered(failures)
        for error in set(map(str, failures.values())):
            logger.warning("share group %s: the share coordinator did not create state: %s", group_id, error)
        shard = self._groups.runtime.shard_for(group_id)
        if failed:
            _check_written(
                await self._groups.runtime.wait_written(lambda done: shard.share.not_created(group_id, failed, done))
            )
        there = reduced(asked, failed)
        if there:
            unwanted: list[Partitions] = []
            written: StrandlineError | None = await self._groups.runtime.wait_written(
                lambda done: unwanted.append(shard.share.created(group_id, there, done))
            )
            _check_written(written)
            crash_point("share.group.after_recording")
            await self._delete(group_id, unwanted[0])

    def _turn_of(self, group_id: str) -> asyncio.Lock:
        """State of a group is created or deleted, never both at a time: what is decided last is done last."""
        return self._turns.setdefault(group_id, asyncio.Lock())

    async def _delete(self, group_id: str, partitions: Partitions) -> dict[tuple[UUID, int], StrandlineError]:
        return await self._for_each(
            sorted_pairs(partitions),
            lambda topic_id, partition: self._states.delete(group_id, topic_id, partition),
        )

    async def _for_each(
        self, partitions: Iterable[tuple[UUID, int]], call: Callable[[UUID, int], Coroutine[Any, Any, None]]
    ) -> dict[tuple[UUID, int], StrandlineError]:
        """Call for all partitions at the same time. Returns the failures."""
        asked = list(partitions)
        results = await asyncio.gather(*(self._attempt(call(*one)) for one in asked))
        return {one: error for one, error in zip(asked, results, strict=True) if error is not None}

    async def _attempt(self, call: Coroutine[Any, Any, None]) -> StrandlineError | None:
        try:
            await self._patiently(call)
        except StrandlineError as error:
            return error
        return None

    async def _patiently(self, call: Coroutine[Any, Any, T]) -> T:
        """Raises RequestTimedOut if the answer takes too long."""
        try:
            return await within(self._clock, self._patience, call)
        except TimeoutError as error:
            raise RequestTimedOut(f"Another broker has not answered within {self._patience:g} seconds.") from error

    # Administration ---------------------------------------------------------------------------------------------

    def _check(self, group_id: str) -> None:
        """Raises UnsupportedVersion, InvalidGroupId."""
        check_share_groups(self._images.image)
        if not group_id:
            raise InvalidGroupId("The group id is empty.")

    def describe(self, group_id: str) -> DescribedShareGroup:
        """The members and assignments of a share group, or the error that says why not."""
        try:
            self._check(group_id)
            return self._groups.runtime.shard_for(group_id).share.table.existing(group_id).described_share_group()
        except StrandlineError as error:
            return DescribedModernGroup(group_id=group_id, error=error)

    async def offsets(self, group_id: str, partitions: Sequence[TopicPartition] | None) -> list[ShareOffset]:
        """Where the group begins in these partitions, or in all that it has state of. Raises coordinator errors.

        A partition without state has no offset, which is not an error.
        """
        self._check(group_id)
        shard = self._groups.runtime.shard_for(group_id)
        image = self._images.image
        if partitions is None:
            group = shard.groups.get(group_id)
            known = sorted_pairs(group.assignable if isinstance(group, ShareGroup) else {})
            asked = [(image.topics_by_id[at].name, at, number) for at, number in known if at in image.topics_by_id]
            found = [ShareOffset(topic=name, topic_id=at, partition=number) for name, at, number in asked]
        else:
            found = [
                ShareOffset(topic=name, topic_id=image.topics[name].topic_id, partition=number)
                if name in image.topics
                else ShareOffset(topic=name, partition=number)
                for name, number in partitions
            ]
        return list(await asyncio.gather(*(self._located(group_id, one) for one in found)))

    async def _located(self, group_id: str, asked: ShareOffset) -> ShareOffset:
        if not asked.topic_id.int:
            return asked
        try:
            summary = await self._patiently(self._states.summary(group_id, asked.topic_id, asked.partition))
        except StrandlineError as error:
            logger.info("share group %s: no offset of %s-%d: %s", group_id, asked.topic, asked.partition, error)
            return asked
        found = replace(asked, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch)
        if summary.start_offset == NO_SHARE_OFFSET or summary.delivery_complete_count < 0:
            return found
        try:
            end = await self._patiently(self._ends.end_offset(TopicPartition(asked.topic, asked.partition)))
        except StrandlineError as error:
            return replace(asked, error=error)
        return replace(found, lag=end - summary.start_offset - summary.delivery_complete_count)

    async def alter_offsets(self, group_id: str, wishes: Sequence[AlteredShareOffset]) -> list[AlteredShareOffset]:
        """Begin at other offsets, in a group without members, which may be new. One answer per wish.

        Raises an error that concerns all of them.
        """
        self._check(group_id)
        if not wishes:
            return []
        shard = self._groups.runtime.shard_for(group_id)
        result: OffsetAlteration | StrandlineError = await self._groups.runtime.wait_written(
            lambda done: shard.share.alter_offsets(group_id, wishes, done)
        )
        decided = _raise(result)
        failures = {} if decided.creation is None else await self._create(decided.creation)
        return [
            answer if answer.error else replace(answer, error=failures.get((answer.topic_id, answer.partition)))
            for answer in decided.answers
        ]

    async def delete_offsets(self, group_id: str, topics: Sequence[str]) -> list[DeletedShareOffsets]:
        """Forget the offsets of topics, in a group without members. One answer per topic.

        Raises an error that concerns all of them.
        """
        self._check(group_id)
        shard = self._groups.runtime.shard_for(group_id)
        result: OffsetDeletion | StrandlineError = await self._groups.runtime.wait_written(
            lambda done: shard.share.begin_offset_deletion(group_id, topics, done)
        )
        decided = _raise(result)
        async with self._turn_of(group_id):
            shard = self._groups.runtime.shard_for(group_id)  # the group may have moved to another broker meanwhile
            deleted = shard.share.still_deleted(group_id, decided.partitions)
            failures = await self._delete(group_id, deleted)
            kept: StrandlineError = NonEmptyGroup(
                f"A member has joined group {group_id} before its offsets were deleted."
            )
            refused = dict.fromkeys(decided.partitions.keys() - deleted.keys(), kept)
            refused |= {topic_id: error for (topic_id, _), error in failures.items()}
            gone = [topic_id for topic_id in deleted if topic_id not in refused]
            _check_written(
                await self._groups.runtime.wait_written(
                    lambda done: shard.share.end_offset_deletion(group_id, gone, done)
                )
            )
        return [
            answer if answer.error else replace(answer, error=refused.get(answer.topic_id))
            for answer in decided.answers
        ]

    async def delete_groups(self, group_ids: Sequence[str]) -> list[StrandlineError | None]:
        """Delete groups of any type; the state of share groups first. One answer per group."""
        refused = await asyncio.gather(*map(self._delete_states, group_ids))
        remaining = [group_id for group_id, error in zip(group_ids, refused, strict=True) if error is None]
        deleted = dict(zip(remaining, await self._groups.delete_groups(remaining), strict=True))
        return [error or deleted[group_id] for group_id, error in zip(group_ids, refused, strict=True)]

    async def _delete_states(self, group_id: str) -> StrandlineError | None:
        try:
            shard = self._groups.runtime.shard_for(group_id)
            if not isinstance(shard.groups.get(group_id), ShareGroup):
                return None
            result: Partitions | StrandlineError = await self._groups.runtime.wait_written(
                lambda done: shard.share.begin_group_deletion(group_id, done)
            )
            partitions = _raise(result)
            async with self._turn_of(group_id):
                shard = self._groups.runtime.shard_for(group_id)  # the group may have moved to another broker meanwhile
                failures = await self._delete(group_id, shard.share.still_deleted(group_id, partitions))
        except StrandlineError as error:
            return error
        topics = self._images.image.topics_by_id  # the state of a topic that went meanwhile goes by itself
        return next((error for (topic_id, _), error in failures.items() if topic_id in topics), None)


def _raise(result: T | StrandlineError) -> T:
    if isinstance(result, StrandlineError):
        raise result
    return result


def _check_written(error: StrandlineError | None) -> None:
    if error is not None:
        raise client_error(error) from error
