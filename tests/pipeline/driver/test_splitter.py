"""What a split pass does about split files that the brokers refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import (
    ClaimedFile,
    ClaimedFiles,
    ClaimFiles,
    NewSplit,
    PlannedRow,
    PlannedSplit,
    RecordedSplits,
    RecordSplits,
    ReleaseFiles,
)
from strandline.pipeline.client import TieringClient
from strandline.pipeline.driver.holds import Holds
from strandline.pipeline.driver.jobs import SparkJobs, Task
from strandline.pipeline.driver.lines import LineReporter
from strandline.pipeline.driver.splitter import Splitter
from strandline.pipeline.driver.tasks import SplitResult
from strandline.pipeline.driver.threads import DaemonThreads
from strandline.pipeline.driver.troubles import LONGEST_WAIT_SECONDS, Troubles
from strandline.pipeline.driver.world import RunWorld
from strandline.pipeline.stores import StoreSettings
from strandline.testing.clock import VirtualClock
from tests.admin.http.conversions import CLUSTER, PARTITION, SPLIT

ROW = PlannedRow(0, 9, 0, 100, 0, 5, 5, 0)
FILE = ClaimedFile(
    file_id=1,
    object_key="wal/1",
    size=100,
    expires_at_ms=5,
    splits=(PlannedSplit(partition=PARTITION, rows=(ROW,)),),
)


@dataclass
class Brokers:
    """One WAL object waits to be split. It stays eligible until its split file is recorded."""

    refusals: list[str]
    """Why the next split files do not count."""
    rival_has_it: bool = False
    """Whether another driver has claimed the object when a split file is refused."""
    recorded: list[str] = field(default_factory=list)
    claims: int = 0
    is_claimable: bool = True

    def claim_files(self, wish: ClaimFiles) -> ClaimedFiles:
        if not self.is_claimable or wish.after_file_id:
            return ClaimedFiles(files=(), next_file_id=0)
        self.claims += 1
        return ClaimedFiles(files=(FILE,), next_file_id=0)

    def record_splits(self, request: RecordSplits) -> RecordedSplits:
        keys = [split.file.object_key for split in request.splits]
        if self.refusals:
            self.is_claimable = not self.rival_has_it
            return RecordedSplits(refused=dict.fromkeys(keys, self.refusals.pop(0)), files_done=())
        self.recorded += keys
        self.is_claimable = False
        return RecordedSplits(refused={}, files_done=request.object_keys)

    def release_files(self, request: ReleaseFiles) -> None:
        assert request.object_keys == ("wal/1",)


class NewNames:
    """Each attempt writes a split file with a name of its own."""

    slots = 1

    def __init__(self) -> None:
        self._attempts = 0

    async def run(self, stage: str, description: str, tasks: Sequence[str], work: Task) -> list[str]:
        assert [decode(ClaimedFile, json.loads(row)[0][0]) for row in tasks] == [FILE]
        self._attempts += 1
        split = NewSplit(PARTITION, replace(SPLIT, object_key=f"split/{self._attempts}"))
        result = SplitResult(object_keys=("wal/1",), splits=(split,), troubles={})
        return [json.dumps(encode(result))]


def run_passes(brokers: Brokers, passes: int = 1) -> RunWorld:
    """With enough time in between for what has failed to be tried again."""
    clock = VirtualClock()
    world = RunWorld(
        client=cast(TieringClient, brokers),
        jobs=cast(SparkJobs, NewNames()),
        threads=DaemonThreads(),
        claimant="driver",
        topics=(),
        settings=CLUSTER.pipeline,
        stores=StoreSettings({}, "c"),
        clock=clock,
        reporter=LineReporter(as_json=True),
        holds=Holds("driver"),
        troubles=Troubles(clock),
    )

    async def run() -> None:
        splitter = Splitter(world)
        for number in range(passes):
            clock.move(LONGEST_WAIT_SECONDS if number else 0)
            await splitter.run_pass()
            assert not world.holds

    asyncio.run(run())
    return world


def test_what_is_lost_before_it_is_recorded_is_split_again_in_the_same_pass() -> None:
    """A run that ends without a complaint has converted everything that was eligible."""
    brokers = Brokers(refusals=["The object was taken as an orphan."])
    world = run_passes(brokers)
    assert brokers.recorded == ["split/2"]
    assert world.troubles.sentences() == []
    assert (world.tally.files, world.tally.splits, world.tally.refused) == (1, 1, 1)


def test_what_is_refused_again_is_a_failure_and_is_left_for_later() -> None:
    brokers = Brokers(refusals=["It has 5 bytes."] * 9)
    world = run_passes(brokers)
    assert (brokers.claims, brokers.recorded) == (2, [])
    (sentence,) = world.troubles.sentences()
    assert "wal/1" in sentence
    assert "It has 5 bytes." in sentence
    assert world.troubles.is_waiting("wal/1")


def test_what_is_refused_in_every_pass_needs_somebody_to_look() -> None:
    world = run_passes(Brokers(refusals=["It has 5 bytes."] * 9), passes=3)
    assert world.troubles.failing(3) == 1


def test_what_another_driver_has_claimed_meanwhile_is_left_to_it() -> None:
    brokers = Brokers(refusals=["The WAL object wal/1 is claimed by another."], rival_has_it=True)
    world = run_passes(brokers)
    assert (brokers.claims, brokers.recorded) == (1, [])
    assert world.troubles.sentences() == []
