"""Claims, split files, segments, trimming and deletion in any order: what has to be true is true after each call."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest

from strandline.clock import SystemChance
from strandline.controlplane import FindBatches, Refusal, RetentionRule, SqlControlPlane
from strandline.controlplane.conversion import SegmentUpload
from strandline.controlplane.conversion.values import SplitsToRecord, UploadState
from strandline.model import TopicIdPartition
from strandline.sql import SqlStore, open_store
from strandline.testing.clock import VirtualClock
from tests.controlplane.converting import CLAIM_MS, ME, RIVAL, assert_consistent, begin, claim, record_of
from tests.controlplane.making import ALL_BYTES, OTHER_TOPIC, TOPIC, HandSetClock, batch, wal
from tests.partitions import id_partition
from tests.postgres import start_postgres

T = TypeVar("T")

PARTITIONS = [id_partition(TOPIC, 0), id_partition(TOPIC, 1), id_partition(OTHER_TOPIC, 0)]


class Conversion:
    """The model knows where each log begins and ends, and which segments it has."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.time = HandSetClock()
        self.ids = itertools.count()
        self.starts: dict[TopicIdPartition, int] = {}
        self.ends: dict[TopicIdPartition, int] = {}
        self.boundaries: dict[TopicIdPartition, int] = {}
        self.segments = 0
        self.written: list[SplitsToRecord] = []
        """Split files that exist, recorded or not."""

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def open(self) -> Coroutine[Any, Any, SqlStore]:
        return self.stack.enter_async_context(open_store(self.url))

    def begin_world(self) -> None:
        self.plane = SqlControlPlane(self.run(self.open()), clock=VirtualClock(), time=self.time)
        self.create(PARTITIONS)

    def create(self, made: list[TopicIdPartition]) -> None:
        self.run(self.plane.lifecycle.create_logs(made))
        for partition in made:
            self.starts[partition] = self.ends[partition] = self.boundaries[partition] = 0

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()

    # The pipeline

    def write(self, items: list[tuple[TopicIdPartition, int, int]]) -> None:
        file = wal(f"f{next(self.ids)}", *(batch(p, count, leader_epoch=epoch) for p, count, epoch in sorted(items)))
        (answers,) = self.run(self.plane.commits.commit_files([file]))
        for item, answer in zip(file.batches, answers, strict=True):
            assert (answer.refusal, answer.base_offset) == (None, self.ends[item.partition])
            self.ends[item.partition] += item.record_count
        self.time.now += 1

    def pass_time(self, ms: int) -> None:
        self.time.now += ms

    def split(self, claimant: str, max_files: int, max_rows: int, records: bool) -> None:
        claimed = self.run(claim(self.plane, claimant, max_files=max_files, max_rows=max_rows))
        for file in claimed.files:
            request = record_of(file, claimant, attempt=str(next(self.ids)))
            self.written.append(request)
            if records:
                assert self.run(self.plane.claims.record_splits(request)).refused == {}

    def record_late_or_again(self, number: int) -> None:
        if not self.written:
            return
        request = self.written[number % len(self.written)]
        answer = self.run(self.plane.claims.record_splits(request))
        assert self.run(self.plane.claims.record_splits(request)).refused.keys() == answer.refused.keys()

    def search_for_orphans(self, number: int) -> None:
        if not self.written:
            return
        keys = [split.file.object_key for split in self.written[number % len(self.written)].splits]
        self.run(self.plane.files.take_orphans(keys, broker_id=1))

    def lose_split_files(self, number: int) -> None:
        if not self.written:
            return
        keys = [split.file.object_key for split in self.written[number % len(self.written)].splits]
        self.run(self.plane.claims.undo_splits(keys))

    def begin(self, claimant: str, number: int, count: int, ends: bool) -> None:
        found = self.run(self.plane.merging.mergeable_splits([TOPIC, OTHER_TOPIC], max_splits=count))
        if not found:
            return
        log = found[number % len(found)]
        partition, last = log.log.partition, log.splits[-1].file.last_offset
        answer = self.run(begin(self.plane, partition, log.next_upload_offset, last, claimant=claimant))
        assert answer.refusal in (None, Refusal.CLAIMED)
        if answer.upload is not None:
            assert [*answer.splits] == [split.file for split in log.splits]
            if ends:
                self.end(answer.upload, commits=True)

    def uploads(self) -> Sequence[SegmentUpload]:
        return self.run(self.plane.uploads.segment_uploads(PARTITIONS))

    def finish(self, number: int, commits: bool) -> None:
        if uploads := self.uploads():
            self.end(uploads[number % len(uploads)], commits=commits)

    def end(self, upload: SegmentUpload, *, commits: bool) -> None:
        partition = upload.partition
        answer = self.run(self.plane.uploads.finish_segment(partition, upload.segment_id, leader_epoch=0))
        if upload.state is UploadState.ABORTING:
            assert answer.refusal is Refusal.UNKNOWN_UPLOAD
        if not commits:
            return
        done = self.run(self.plane.uploads.commit_segment(partition, upload.segment_id, leader_epoch=0))
        if done.refusal is None:
            self.segments += 1
            assert upload.base_offset <= max(self.boundaries[partition], self.starts[partition])
            self.boundaries[partition] = upload.last_offset + 1
        assert (
            self.run(self.plane.uploads.commit_segment(partition, upload.segment_id, leader_epoch=0)).refusal
            is not None
        )

    def abort(self, number: int, forgets: bool) -> None:
        uploads = self.uploads()
        if not uploads:
            return
        upload = uploads[number % len(uploads)]
        for aborted in self.run(self.plane.uploads.abort_segment(upload.partition, upload.segment_id, leader_epoch=0)):
            assert aborted.state is UploadState.ABORTING
            if forgets:
                self.run(self.plane.uploads.forget_segment(upload.partition, aborted.segment_id))

    def what_is_finishing_can_be_committed(self) -> None:
        """Only whatever is UPLOADING is ever aborted: nothing is left behind a hole."""
        for partition in PARTITIONS:
            under_way = [one for one in self.uploads() if one.partition == partition]
            states = [one.state for one in under_way if one.state is not UploadState.ABORTING]
            assert states == sorted(states, key=[UploadState.FINISHING, UploadState.UPLOADING].index)

    # Everybody else

    def delete_records(self, partition: TopicIdPartition, part: float) -> None:
        start, end = self.starts[partition], self.ends[partition]
        offset = start + int(part * (end - start))
        self.run(self.plane.trimming.delete_records({partition: offset}))
        self.starts[partition] = offset
        self.run(self.plane.uploads.conversion_ended(partition, leader_epoch=0))

    def retain(self, partition: TopicIdPartition, kept: int) -> None:
        (trimmed,) = self.run(self.plane.trimming.enforce_retention([RetentionRule(partition, -1, kept)], max_rows=3))
        if self.starts[partition] < self.boundaries[partition]:
            assert trimmed.log_start_offset == self.starts[partition]
        self.starts[partition] = trimmed.log_start_offset

    def clean(self) -> None:
        files = self.run(self.plane.files.files_to_delete(marked_for_ms=0, limit=100))
        self.run(self.plane.files.forget_files([file.file_id for file in files]))

    def delete_topic(self) -> None:
        self.run(self.plane.lifecycle.delete_topics([OTHER_TOPIC]))
        self.create([PARTITIONS[2]])

    def pause(self, is_paused: bool) -> None:
        self.run(self.plane.wishes.pause_tiering(TOPIC, is_paused=is_paused))
        if is_paused:
            assert all(
                log.log.partition.topic_id != TOPIC
                for log in self.run(self.plane.merging.mergeable_splits([TOPIC], max_splits=1))
            )
            self.run(self.plane.wishes.pause_tiering(TOPIC, is_paused=False))

    def everything_holds_together(self) -> None:
        self.run(assert_consistent(self.plane))
        logs = self.run(self.plane.reads.logs(PARTITIONS))
        for partition, log in logs.items():
            found = (log.log_start_offset, log.diskless_start_offset, log.high_watermark)
            assert found == (self.starts[partition], self.boundaries[partition], self.ends[partition])
            if log.log_start_offset < log.diskless_start_offset:
                (answer,) = self.run(
                    self.plane.reads.find_batches([FindBatches(partition, log.log_start_offset, ALL_BYTES)], max_rows=1)
                )
                assert answer.refusal is Refusal.IN_PREFIX


Action = Callable[[Conversion, SystemChance], None]


def one_of(items: Sequence[T], dice: SystemChance) -> T:
    return items[dice.below(len(items))]


def some(dice: SystemChance) -> list[tuple[TopicIdPartition, int, int]]:
    return [(one_of(PARTITIONS, dice), 1 + dice.below(4), dice.below(2)) for _ in range(1 + dice.below(6))]


def who(dice: SystemChance) -> str:
    return one_of([ME, ME, RIVAL], dice)


def often(dice: SystemChance) -> bool:
    return dice.below(10) < 7


ACTIONS: list[tuple[int, Action]] = [
    (12, lambda w, d: w.write(some(d))),
    (12, lambda w, d: w.split(who(d), 1 + d.below(3), 1 + d.below(8), often(d))),
    (12, lambda w, d: w.begin(who(d), d.below(100), 1 + d.below(3), often(d))),
    (6, lambda w, d: w.finish(d.below(100), often(d))),
    (2, lambda w, d: w.record_late_or_again(d.below(1000))),
    (2, lambda w, d: w.search_for_orphans(d.below(1000))),
    (2, lambda w, d: w.lose_split_files(d.below(1000))),
    (2, lambda w, d: w.abort(d.below(100), often(d))),
    (2, lambda w, d: w.pass_time(one_of([1, CLAIM_MS // 2, 2 * CLAIM_MS], d))),
    (2, lambda w, d: w.delete_records(one_of(PARTITIONS, d), d.below(50) / 100)),
    (2, lambda w, d: w.retain(one_of(PARTITIONS, d), d.below(500))),
    (2, lambda w, d: w.clean()),
    (1, lambda w, d: w.delete_topic()),
    (1, lambda w, d: w.pause(often(d))),
]
"""What can happen, and how often."""
CHOICES = [action for weight, action in ACTIONS for _ in range(weight)]


@pytest.mark.parametrize(("database", "steps"), [("sqlite", 600), ("postgresql", 150)])
def test_any_order(database: str, steps: int) -> None:
    url = "sqlite:///:memory:" if database == "sqlite" else start_postgres().new_database()
    dice = SystemChance(12)
    world = Conversion(url)
    try:
        world.begin_world()
        for _ in range(steps):
            one_of(CHOICES, dice)(world, dice)
            world.everything_holds_together()
            world.what_is_finishing_can_be_committed()
        assert world.segments > steps // 30
    finally:
        world.teardown()
