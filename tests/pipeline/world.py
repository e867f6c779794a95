"""The tiering pipeline in plain Python: it converts topics of a running broker as Spark does, in this process.

    convert(broker.bootstrap, "orders")

converts everything that is committed by now. Tests that look at what is between two steps use `Pipeline`: each of its
methods is one step, and what a step has made is in the stores and in the control plane.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from strandline.clock import SystemClock, SystemIds
from strandline.conversion_api.values import (
    BeginSegment,
    BegunSegment,
    ClaimedFile,
    ClaimFiles,
    CommitSegment,
    ListMerges,
    MergeRange,
    NewSplit,
    RecordedSplits,
    RecordSplits,
)
from strandline.model import Offset, TopicIdPartition
from strandline.pipeline.client import TieringClient
from strandline.pipeline.damage import ConversionFailed
from strandline.pipeline.driver.plans import joined_bytes
from strandline.pipeline.merging import BuiltSegment, merge_chain
from strandline.pipeline.splitting import SplitBundle, split_files
from strandline.pipeline.stores import Stores, StoreSettings, open_stores
from tests.pipeline.calls import TieringCalls

T = TypeVar("T")
CLAIM_MS = 60_000
BUFFER_BYTES = 1024 * 1024


class Converted(NamedTuple):
    """What a run has done."""

    splits: tuple[NewSplit, ...] = ()
    segments: tuple[BuiltSegment, ...] = ()
    boundaries: Mapping[TopicIdPartition, Offset] = {}
    """Where the rows of the control plane begin, of each partition that has a new segment."""
    failures: tuple[ConversionFailed, ...] = ()


@dataclass
class Pipeline:
    """One run of the pipeline, by one claimant. Blocking: in a test with an event loop use `asyncio.to_thread`."""

    calls: TieringCalls
    topics: tuple[str, ...] = ()
    claimant: str = field(default_factory=lambda: f"test:{SystemIds().uuid()}")
    claim_ms: int = CLAIM_MS
    buffer_bytes: int = BUFFER_BYTES
    bundle_files: int = 3
    """So many WAL objects are split together."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What describe does not tell: secrets."""

    def run(self) -> Converted:
        """Split what is eligible, then merge what is mergeable."""
        splits, failures = self.split()
        segments: list[BuiltSegment] = []
        boundaries: dict[TopicIdPartition, Offset] = {}
        while chains := self.begin():
            for chain in chains:
                for built in self.build(chain):
                    boundaries[chain[0].partition] = self.commit(chain[0].partition, built)
                    segments.append(built)
        return Converted(tuple(splits), tuple(segments), boundaries, tuple(failures))

    # Splitting

    def split(self) -> tuple[list[NewSplit], list[ConversionFailed]]:
        """Claim, split and record until no file is left. A damaged file does not hold the others up."""
        splits: list[NewSplit] = []
        failures: list[ConversionFailed] = []
        files = list(self.claim())
        for first in range(0, len(files), self.bundle_files):
            bundle = files[first : first + self.bundle_files]
            found = self.write_together(bundle)
            failures += found.troubles.values()
            refused = self.record(bundle, found.splits).refused
            splits += [split for split in found.splits if split.file.object_key not in refused]
        return splits, failures

    def claim(self, *, max_files: int = 100) -> Iterator[ClaimedFile]:
        """The files to split, oldest first."""
        after = 0
        while True:
            answer = self.calls.claim_files(
                ClaimFiles(
                    claimant=self.claimant,
                    max_files=max_files,
                    max_rows=10_000,
                    claim_ms=self.claim_ms,
                    after_file_id=after,
                    topics=self.topics,
                )
            )
            yield from answer.files
            after = answer.next_file_id
            if not after:
                return

    def write_splits(self, file: ClaimedFile) -> tuple[NewSplit, ...]:
        """Write the split files of a WAL object. Raises ConversionFailed."""
        found = self.write_together([file])
        for trouble in found.troubles.values():
            raise trouble
        return found.splits

    def write_together(self, files: Sequence[ClaimedFile]) -> SplitBundle:
        """Write the split files of some WAL objects."""

        joined = joined_bytes(self.calls.describe().pipeline.max_segment_bytes)

        async def write(stores: Stores) -> SplitBundle:
            return await split_files(
                stores.objects,
                files,
                claimant=self.claimant,
                buffer_bytes=self.buffer_bytes,
                joined_bytes=joined,
                clock=SystemClock(),
                ids=SystemIds(),
            )

        return self._with_stores(write)

    def record(self, files: Iterable[ClaimedFile], splits: Iterable[NewSplit]) -> RecordedSplits:
        """Let split files count."""
        keys = tuple(file.object_key for file in files)
        return self.calls.record_splits(RecordSplits(claimant=self.claimant, object_keys=keys, splits=tuple(splits)))

    # Merging

    def begin(self) -> list[list[BegunSegment]]:
        """Announce the segments that can be built now: a chain for each partition."""
        ranges = self.calls.list_merges(ListMerges(topics=self.topics)).ranges
        return [
            [self.begin_segment(one) for one in chain] for _, chain in groupby(ranges, key=lambda one: one.partition)
        ]

    def begin_segment(self, merged: MergeRange) -> BegunSegment:
        return self.calls.begin_segment(
            BeginSegment(
                claimant=self.claimant,
                partition=merged.partition,
                base_offset=merged.base_offset,
                last_offset=merged.last_offset,
                claim_ms=self.claim_ms,
            )
        )

    def build(self, chain: Sequence[BegunSegment]) -> list[BuiltSegment]:
        """Build and upload the segments of a chain."""

        async def build(stores: Stores) -> list[BuiltSegment]:
            with tempfile.TemporaryDirectory() as workdir:
                merging = merge_chain(stores, chain, Path(workdir), buffer_bytes=self.buffer_bytes)
                async with aclosing(merging):
                    return [built async for built in merging]

        return self._with_stores(build)

    def commit(self, partition: TopicIdPartition, built: BuiltSegment) -> Offset:
        """Let a segment be read. Where the rows of the control plane begin from then on."""
        answer = self.calls.commit_segment(
            CommitSegment(
                claimant=self.claimant,
                partition=partition,
                segment_id=built.segment_id,
                end_offset=built.end_offset,
                custom_metadata=built.custom_metadata,
            )
        )
        return answer.diskless_start_offset

    def _with_stores(self, work: Callable[[Stores], Awaitable[T]]) -> T:
        description = self.calls.describe()
        settings = StoreSettings({**description.store_settings, **self.settings}, description.cluster_id)

        async def run() -> T:
            async with open_stores(settings) as stores:
                return await work(stores)

        return asyncio.run(run())


def convert(
    bootstrap: str, *topics: str, is_triggered: bool = True, settings: Mapping[str, str] | None = None
) -> Converted:
    """Convert topics of a running broker: everything that is committed by now, or what is old enough.

    Nothing may fail. `settings` are those that open the stores and that brokers do not tell, such as secrets.
    """
    with TieringClient(bootstrap) as client:
        for topic in topics if is_triggered else ():
            client.trigger(topic)
        done = Pipeline(client, topics, settings=settings or {}).run()
    assert done.failures == ()
    return done


class ServiceCalls:
    """The calls on a `TieringService` whose event loop runs in another thread."""

    def __init__(self, service: object, loop: asyncio.AbstractEventLoop) -> None:
        self._service, self._loop = service, loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._service, name)

        def call(*arguments: Any, **named: Any) -> Any:
            work: Coroutine[Any, Any, Any] = method(*arguments, **named)
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()

        return call


def calls_of(service: object, loop: asyncio.AbstractEventLoop) -> TieringCalls:
    """A service as the pipeline calls it; the pipeline must run in another thread than the loop."""
    return cast(TieringCalls, ServiceCalls(service, loop))
