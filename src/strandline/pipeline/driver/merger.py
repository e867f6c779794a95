"""The second half of a round: split files become segments."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import logging
from collections.abc import Sequence
from typing import Final

from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import BeginSegment, BegunSegment, CommitSegment, ListMerges
from strandline.crash import crash_point
from strandline.model import TopicIdPartition
from strandline.pipeline.client import BrokersUnavailable, RequestRefused
from strandline.pipeline.driver.holds import abort
from strandline.pipeline.driver.jobs import JobFailed
from strandline.pipeline.driver.plans import MergeChain, chains_of, merge_jobs_of, tasks_of
from strandline.pipeline.driver.reporting import merge_description, numbered, rate_text, size_text
from strandline.pipeline.driver.tasks import MergeResult, PlannedChain, merge_task
from strandline.pipeline.driver.world import JOBS_AT_ONCE, RunWorld, together

logger = logging.getLogger(__name__)

_LEADERS_AT_ONCE: Final = 16
"""Partitions whose leaders are asked at the same time."""
_RANGES: Final = 100
_RANGES_OF_FAILING: Final = 1000
"""More are asked for while some partitions are left alone, so that others are in the list."""


class Merger:
    """Passes over the partitions with split files that are enough for a segment, or have waited enough."""

    def __init__(self, world: RunWorld) -> None:
        self._world = world
        self._leaders = asyncio.Semaphore(_LEADERS_AT_ONCE)
        self._passes = itertools.count(1)

    async def run_pass(self) -> int:
        """Merge until nothing is left that can be merged now; how many segments that were.

        Raises BrokersUnavailable; segments that were begun are given up by the next pass. Each pass has a claimant of
        its own: if a request of an earlier pass is carried out late, the claim of its segment is not renewed.
        """
        world = self._world
        for partition, trouble in (await world.call(world.holds.give_up_segments, world.client)).items():
            world.fail(partition, f"The partition {partition.topic_partition}", trouble)
        world.merge_claimant = f"{world.claimant}/{next(self._passes)}"
        total = 0
        while True:
            done = await self._run_list()
            total += done
            if not done:
                return total

    async def _run_list(self) -> int:
        world = self._world
        wish = ListMerges(topics=world.topics, max_ranges=_RANGES_OF_FAILING if len(world.troubles) else _RANGES)
        answer = await world.call(world.client.list_merges, wish)
        waiting = {one.partition for one in answer.ranges if world.troubles.is_waiting(one.partition)}
        chains = chains_of(answer.ranges, most_bytes=world.settings.max_segment_bytes, without=waiting)
        turns = asyncio.Semaphore(JOBS_AT_ONCE)

        async def in_turn(job: Sequence[MergeChain]) -> int:
            async with turns:
                return await self._run_job(job)

        return sum(await together(in_turn(job) for job in merge_jobs_of(chains, slots=world.jobs.slots)))

    async def _run_job(self, chains: Sequence[MergeChain]) -> int:
        world = self._world
        begun = [chain for chain in await together(self._begin(chain) for chain in chains) if chain]
        if not begun:
            return 0
        planned = [PlannedChain(number=number, segments=tuple(chain)) for number, chain in enumerate(begun)]
        description = merge_description(begun)
        started = world.clock.monotonic()
        world.reporter.say("merge-started", f"{description[:1].upper()}{description[1:]}.", partitions=len(begun))
        results = await self._results(planned, description)
        counts = await together(self._commit(planned[result.number].segments, result) for result in results)
        seconds = world.clock.monotonic() - started
        size = sum(one.size_bytes for result in results for one in result.segments)
        world.reporter.say(
            "merge",
            f"Merged {numbered(sum(counts), 'segment')} of {numbered(len(begun), 'partition')}: {size_text(size)} "
            f"in {seconds:.1f} s ({rate_text(size, seconds)}).",
            segments=sum(counts),
            bytes=size,
            seconds=round(seconds, 3),
        )
        return sum(counts)

    async def _begin(self, chain: MergeChain) -> list[BegunSegment]:
        """The segments that this run may build: the first ones of the chain, or none."""
        world = self._world
        begun: list[BegunSegment] = []
        for one in chain.ranges:
            crash_point("tiering.driver.before_begin")
            request = BeginSegment(
                claimant=world.merge_claimant,
                partition=chain.partition,
                base_offset=one.base_offset,
                last_offset=one.last_offset,
                claim_ms=world.settings.splitter_claim_duration_ms,
            )
            try:
                async with self._leaders:
                    answer = await world.call(world.client.begin_segment, request)
            except RequestRefused as error:
                # Another driver is at work on the partition, or was faster; or it was paused, deleted, trimmed.
                logger.info("no segment of %s from offset %d: %s", chain.partition, one.base_offset, error)
                if world.troubles.has_failed(chain.partition):
                    # What was begun before has to be given up by the leader first: look again soon.
                    world.troubles.failed(chain.partition, str(error))
                break
            except BrokersUnavailable as error:
                # Its leader is away, or cannot write metadata: other partitions have other leaders.
                world.fail(chain.partition, f"The partition {chain.partition.topic_partition}", str(error))
                break
            world.holds.hold_segment(answer, world.merge_claimant)
            begun.append(answer)
        return begun

    async def _results(self, chains: Sequence[PlannedChain], description: str) -> list[MergeResult]:
        """What became of each chain. If a job dies, each chain gets a job of its own: one of them kills it."""
        world = self._world
        tasks = tasks_of(chains, size=_size, slots=max(world.jobs.slots, len(chains)))
        rows = [json.dumps([encode(chain) for chain in task], separators=(",", ":")) for task in tasks]
        work = functools.partial(merge_task, stores=world.stores, buffer_bytes=world.settings.task_buffer_bytes)
        try:
            texts = await world.jobs.run("merge", description, rows, work)
        except JobFailed as error:
            if len(chains) == 1:
                return [MergeResult(number=chains[0].number, segments=(), trouble=str(error))]
            logger.warning("%s Trying each partition in a job of its own.", error)
            return [(await self._results([chain], merge_description([chain.segments])))[0] for chain in chains]
        return [decode(MergeResult, json.loads(text)) for text in texts]

    async def _commit(self, chain: Sequence[BegunSegment], result: MergeResult) -> int:
        """Tell the leader what is there, in order. What is not is given up. How many segments count now."""
        world, partition = self._world, chain[0].partition
        trouble, done = result.trouble, 0
        for one in result.segments:
            crash_point("tiering.driver.before_commit")
            request = CommitSegment(
                claimant=world.merge_claimant,
                partition=partition,
                segment_id=one.segment_id,
                end_offset=one.end_offset,
                custom_metadata=one.custom_metadata,
            )
            try:
                async with self._leaders:
                    answer = await world.call(world.client.commit_segment, request)
            except (RequestRefused, BrokersUnavailable) as error:
                trouble = str(error)
                break
            crash_point("tiering.driver.after_commit")
            world.holds.drop_segment(one.segment_id)
            done += 1
            world.tally.segments += 1
            world.tally.bytes_merged += one.size_bytes
            self._say(partition, chain[done - 1], answer.diskless_start_offset)
        if done < len(chain):
            first = chain[done].segment.segment_id
            if not await world.call(abort, world.client, world.merge_claimant, partition, first):
                for given_up in chain[done:]:
                    world.holds.drop_segment(given_up.segment.segment_id)
        if trouble:
            world.fail(partition, f"The partition {partition.topic_partition}", trouble)
        else:
            world.troubles.over(partition)
        return done

    def _say(self, partition: TopicIdPartition, begun: BegunSegment, boundary: int) -> None:
        segment = begun.segment
        self._world.reporter.say(
            "segment",
            f"{partition.topic_partition}: offsets {segment.start_offset:,} to {segment.end_offset:,} are a segment of "
            f"{size_text(segment.segment_size_in_bytes)} now.",
            topic=partition.topic,
            partition=partition.partition,
            start_offset=segment.start_offset,
            end_offset=segment.end_offset,
            bytes=segment.segment_size_in_bytes,
            diskless_start_offset=boundary,
        )


def _size(chain: PlannedChain) -> int:
    return sum(one.segment.segment_size_in_bytes for one in chain.segments)
