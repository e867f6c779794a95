"""The first half of a round: WAL objects become split files."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.crash import crash_point
from strandline.tiering.client import RequestRefused
from strandline.tiering.driver.jobs import JobFailed
from strandline.tiering.driver.plans import tasks_of
from strandline.tiering.driver.reporting import numbered, size_text, split_description, wanted_bytes
from strandline.tiering.driver.tasks import SplitResult, split_task
from strandline.tiering.driver.world import JOBS_AT_ONCE, RunWorld, together
from strandline.tiering_api.codec import decode, encode
from strandline.tiering_api.values import ClaimedFile, ClaimFiles, RecordedSplits, RecordSplits, ReleaseFiles

logger = logging.getLogger(__name__)

_RECORDS_AT_ONCE: Final = 4


class _Recorded(NamedTuple):
    """What counts of a WAL object."""

    object_key: str
    is_file_done: bool = False
    batches: int = 0
    size_bytes: int = 0


class Splitter:
    """Passes over the WAL objects with eligible rows, from the oldest to the newest."""

    def __init__(self, world: RunWorld) -> None:
        self._world = world
        self._turn = asyncio.Lock()
        self._records = asyncio.Semaphore(_RECORDS_AT_ONCE)
        self._after: int | None = None
        """The file id up to which this pass has claimed; None if it has come to the end."""

    async def run_pass(self) -> int:
        """Split everything that is eligible and claimed by nobody else; how many WAL objects that were.

        Raises BrokersUnavailable; what is claimed stays claimed, and the next pass gets it again.
        """
        self._after = 0
        counts = await together(self._work() for _ in range(JOBS_AT_ONCE))
        return sum(counts)

    async def _work(self) -> int:
        count = 0
        while files := await self._claim():
            count += await self._split(files)
        return count

    async def _claim(self) -> list[ClaimedFile]:
        """The files of the next job: a claim for each slot of the cluster. None if the pass is over."""
        world, settings = self._world, self._world.settings
        found: list[ClaimedFile] = []
        async with self._turn:
            claims = 0
            while self._after is not None and claims < world.jobs.slots:
                wish = ClaimFiles(
                    claimant=world.claimant,
                    max_files=settings.splitter_max_files_per_run,
                    max_rows=settings.max_batches_per_run,
                    claim_ms=settings.splitter_claim_duration_ms,
                    after_file_id=self._after,
                    topics=world.topics,
                )
                answer = await world.call(world.client.claim_files, wish)
                self._after = answer.next_file_id or None
                ready = [file for file in answer.files if not world.troubles.is_waiting(file.object_key)]
                await self._release([file.object_key for file in answer.files if file not in ready])
                for file in ready:
                    world.holds.hold_file(file.object_key)
                found += ready
                claims += bool(ready)
        return found

    async def _split(self, files: Sequence[ClaimedFile]) -> int:
        world = self._world
        description = split_description(files)
        started = world.clock.monotonic()
        world.reporter.say("split-started", f"{description[:1].upper()}{description[1:]}.", files=len(files))
        results = await self._results(files, description)
        recorded = await together(self._record(result) for result in results)
        await self._release([one.object_key for one in recorded if not one.is_file_done])
        seconds = world.clock.monotonic() - started
        batches, size = sum(one.batches for one in recorded), sum(one.size_bytes for one in recorded)
        world.reporter.say(
            "split",
            f"Split {numbered(len(files), 'WAL object')}: {numbered(batches, 'batch', 'batches')}, {size_text(size)} "
            f"in {seconds:.1f} s.",
            files=len(files),
            batches=batches,
            bytes=size,
            seconds=round(seconds, 3),
        )
        return len(files)

    async def _results(self, files: Sequence[ClaimedFile], description: str) -> list[SplitResult]:
        """What became of each file. If a job dies, each file gets a job of its own: one of them kills it."""
        world = self._world
        tasks = tasks_of(files, size=wanted_bytes, slots=world.jobs.slots)
        rows = [json.dumps([encode(file) for file in task], separators=(",", ":")) for task in tasks]
        work = functools.partial(split_task, stores=world.stores, buffer_bytes=world.settings.task_buffer_bytes)
        try:
            texts = await world.jobs.run("split", description, rows, work)
        except JobFailed as error:
            if len(files) == 1:
                return [SplitResult(object_key=files[0].object_key, splits=(), trouble=str(error))]
            logger.warning("%s Trying each WAL object in a job of its own.", error)
            return [(await self._results([file], split_description([file])))[0] for file in files]
        return [decode(SplitResult, json.loads(text)) for text in texts]

    async def _record(self, result: SplitResult) -> _Recorded:
        """Tell the brokers what is split of a WAL object."""
        world, key = self._world, result.object_key
        recorded, trouble = _Recorded(key), result.trouble
        if result.splits:
            crash_point("tiering.driver.before_record")
            request = RecordSplits(claimant=world.claimant, object_key=key, splits=result.splits)
            try:
                async with self._records:
                    answer = await world.call(world.client.record_splits, request)
            except RequestRefused as error:
                trouble = str(error)
            else:
                crash_point("tiering.driver.after_record")
                recorded = self._count(result, answer)
        if trouble:
            world.fail(key, f"The WAL object {key}", trouble)
        else:
            world.troubles.over(key)
        if recorded.is_file_done:
            world.holds.drop_file(key)
        return recorded

    def _count(self, result: SplitResult, answer: RecordedSplits) -> _Recorded:
        for refused, sentence in answer.refused.items():
            # The control plane has given the object to the brokers' file cleaner.
            logger.info("the split file %s does not count: %s", refused, sentence)
        counted = [split.file for split in result.splits if split.file.object_key not in answer.refused]
        recorded = _Recorded(
            result.object_key,
            answer.is_file_done,
            sum(file.batch_count for file in counted),
            sum(file.size_bytes for file in counted),
        )
        tally = self._world.tally
        tally.files += bool(counted)
        tally.splits += len(counted)
        tally.batches += recorded.batches
        tally.bytes_split += recorded.size_bytes
        tally.refused += len(answer.refused)
        return recorded

    async def _release(self, object_keys: Sequence[str]) -> None:
        if object_keys:
            world = self._world
            request = ReleaseFiles(claimant=world.claimant, object_keys=tuple(object_keys))
            await world.call(world.client.release_files, request)
            for key in object_keys:
                world.holds.drop_file(key)
