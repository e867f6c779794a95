"""The first half of a round: WAL objects become split files."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import ClaimedFile, ClaimFiles, RecordedSplits, RecordSplits, ReleaseFiles
from strandline.crash import crash_point
from strandline.pipeline.client import RequestRefused
from strandline.pipeline.driver.jobs import JobFailed
from strandline.pipeline.driver.plans import TASK_BYTES, bundles_of, joined_bytes, tasks_of
from strandline.pipeline.driver.reporting import numbered, size_text, split_description, wanted_bytes
from strandline.pipeline.driver.tasks import SplitResult, recorded_together, split_task, unsplit
from strandline.pipeline.driver.world import JOBS_AT_ONCE, RunWorld, together

logger = logging.getLogger(__name__)

_RECORDS_AT_ONCE: Final = 4
_MOST_FILES: Final = 1000
"""That are claimed at a time, unless the settings say more. Brokers refuse more than 10,000."""
_CLAIMS_PER_SLOT: Final = 10
"""Rows of a job, at most, for each slot: so many times what a claim has."""


class _Recorded(NamedTuple):
    """What counts of WAL objects that were split together."""

    unfinished: tuple[str, ...]
    """Keys of those with something left to split."""
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
        self._refused: set[str] = set()
        """Keys of WAL objects with something left to split, of which this pass had split files refused."""

    async def run_pass(self) -> int:
        """Split everything that is eligible and not claimed by another run; how many WAL objects were claimed for that.

        Raises BrokersUnavailable; what is claimed stays claimed, and the next pass gets it again.
        """
        self._refused.clear()
        count = 0
        while True:
            known = len(self._refused)
            self._after = 0
            count += sum(await together(self._work() for _ in range(JOBS_AT_ONCE)))
            # A split file that was taken as an orphan before it was recorded leaves rows without a claim: they are
            # claimed again. Rows that are gone, or that another driver has claimed, are not.
            if len(self._refused) == known:
                return count

    async def _work(self) -> int:
        count = 0
        while files := await self._claim():
            count += await self._split(files)
        return count

    async def _claim(self) -> list[ClaimedFile]:
        """The files of the next job, as many as keep all slots of the cluster busy. None if the pass is over."""
        world, settings = self._world, self._world.settings
        found: list[ClaimedFile] = []
        async with self._turn:
            size = rows = 0
            most_bytes = world.jobs.slots * TASK_BYTES
            most_rows = world.jobs.slots * _CLAIMS_PER_SLOT * settings.max_batches_per_run
            while self._after is not None and size < most_bytes and rows < most_rows:
                wish = ClaimFiles(
                    claimant=world.claimant,
                    # As many again as there are: a thousand small files are not claimed ten by ten.
                    max_files=max(settings.splitter_max_files_per_run, min(len(found), _MOST_FILES)),
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
                size += sum(map(wanted_bytes, ready))
                rows += sum(len(split.rows) for file in ready for split in file.splits)
        return found

    async def _split(self, files: Sequence[ClaimedFile]) -> int:
        world, settings = self._world, self._world.settings
        description = split_description(files)
        started = world.clock.monotonic()
        world.reporter.say("split-started", f"{description[:1].upper()}{description[1:]}.", files=len(files))
        bundles = bundles_of(
            files,
            slots=world.jobs.slots,
            most_bytes=settings.task_buffer_bytes // 2,
            most_rows=settings.max_batches_per_run,
            alone={file.object_key for file in files if world.troubles.has_failed(file.object_key)},
        )
        results = recorded_together(await self._results(bundles, description), settings.max_batches_per_run)
        recorded = await together(self._record(result) for result in results)
        await self._release([key for one in recorded for key in one.unfinished])
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

    async def _results(self, bundles: Sequence[list[ClaimedFile]], description: str) -> list[SplitResult]:
        """What became of each bundle. If a job dies, each bundle gets a job of its own, then each file."""
        world = self._world
        tasks = tasks_of(bundles, size=lambda bundle: sum(map(wanted_bytes, bundle)), slots=world.jobs.slots)
        rows = [json.dumps([[*map(encode, bundle)] for bundle in task], separators=(",", ":")) for task in tasks]
        work = functools.partial(
            split_task,
            claimant=world.claimant,
            stores=world.stores,
            buffer_bytes=world.settings.task_buffer_bytes,
            joined_bytes=joined_bytes(world.settings.max_segment_bytes),
        )
        try:
            texts = await world.jobs.run("split", description, rows, work)
        except JobFailed as error:
            smaller = [[bundle] for bundle in bundles] if len(bundles) > 1 else [[[file]] for file in bundles[0]]
            if len(smaller) == 1:
                return [unsplit(bundles[0], str(error))]
            logger.warning("%s Trying less in a job.", error)
            found = []
            for part in smaller:
                found += await self._results(part, split_description([file for bundle in part for file in bundle]))
            return found
        return [decode(SplitResult, json.loads(text)) for text in texts]

    async def _record(self, result: SplitResult) -> _Recorded:
        """Tell the brokers what is split of some WAL objects."""
        world, keys = self._world, result.object_keys
        recorded, troubles = _Recorded(keys), dict(result.troubles)
        if result.splits:
            crash_point("tiering.driver.before_record")
            request = RecordSplits(claimant=world.claimant, object_keys=keys, splits=result.splits)
            try:
                async with self._records:
                    answer = await world.call(world.client.record_splits, request)
            except RequestRefused as error:
                troubles = dict.fromkeys(keys, str(error)) | troubles
            else:
                crash_point("tiering.driver.after_record")
                recorded = self._count(result, answer)
                troubles = self._refused_again(recorded, answer) | troubles
        for key in keys:
            if key in troubles:
                world.fail(key, f"The WAL object {key}", troubles[key])
            else:
                world.troubles.over(key)
            if key not in recorded.unfinished:
                world.holds.drop_file(key)
        return recorded

    def _refused_again(self, recorded: _Recorded, answer: RecordedSplits) -> dict[str, str]:
        """By key, why WAL objects are not split that were refused, and not for the first time."""
        if not answer.refused:
            return {}
        why = next(iter(answer.refused.values()))
        failed = self._world.troubles.has_failed
        again = [key for key in recorded.unfinished if key in self._refused or failed(key)]
        self._refused.update(recorded.unfinished)
        return {key: f"What was split of the WAL object {key} was refused again: {why}" for key in again}

    def _count(self, result: SplitResult, answer: RecordedSplits) -> _Recorded:
        for refused, sentence in answer.refused.items():
            # The control plane has given the object to the brokers' file cleaner.
            logger.info("the split file %s does not count: %s", refused, sentence)
        counted = [split.file for split in result.splits if split.file.object_key not in answer.refused]
        done = set(answer.files_done)
        recorded = _Recorded(
            tuple(key for key in result.object_keys if key not in done),
            sum(file.batch_count for file in counted),
            sum(file.size_bytes for file in counted),
        )
        tally = self._world.tally
        tally.files += sum(key not in result.troubles for key in result.object_keys) if counted else 0
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
