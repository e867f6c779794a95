"""What Spark's executors run: plan rows in, small results out, both as JSON. Bytes go from store to store.

A task that fails, is repeated, or runs twice at a time has no effect by itself: split files have new names in each
attempt, segments the same name and the same bytes, and nothing counts before the driver has told the brokers.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemClock, SystemIds
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import BegunSegment, ClaimedFile, NewSplit
from strandline.errors import StrandlineError
from strandline.model import Offset
from strandline.objects import ObjectStoreError
from strandline.pipeline.damage import ConversionFailed
from strandline.pipeline.driver.reporting import listed
from strandline.pipeline.merging import merge_chain
from strandline.pipeline.splitting import split_files
from strandline.pipeline.stores import Stores, StoreSettings, open_stores
from strandline.remote.ports import RemoteStorageError

_EXPECTED = (ConversionFailed, ObjectStoreError, RemoteStorageError, StrandlineError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """What became of WAL objects that were split together."""

    object_keys: tuple[str, ...]
    splits: tuple[NewSplit, ...]
    """They are written, also if another part of the objects is damaged."""
    troubles: Mapping[str, str]
    """Why not all of an object is split, by its key; sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedSegment:
    """A segment whose bytes are in remote storage."""

    segment_id: UUID
    end_offset: Offset
    custom_metadata: bytes | None
    size_bytes: int
    milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What became of the segments of one partition."""

    number: int
    """Of the chain in its job."""
    segments: tuple[UploadedSegment, ...]
    """The first ones of the chain."""
    trouble: str = ""
    """Why the others are not there; a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChain:
    """The segments of one partition that a task has to build, one after the other."""

    number: int
    segments: tuple[BegunSegment, ...]


def split_task(
    rows: Iterable[str], claimant: str, stores: StoreSettings, buffer_bytes: int, joined_bytes: int
) -> Iterator[str]:
    """Split the bundles of WAL objects that each row has a list of; a `SplitResult` for each bundle."""
    bundles = [[decode(ClaimedFile, file) for file in bundle] for row in rows for bundle in json.loads(row)]
    return iter(asyncio.run(_split(bundles, claimant, stores, buffer_bytes, joined_bytes)))


async def _split(
    bundles: list[list[ClaimedFile]], claimant: str, settings: StoreSettings, buffer_bytes: int, joined_bytes: int
) -> list[str]:
    # While one bundle is written, the next one is read. Each has half of the buffer in memory.
    turns = asyncio.Semaphore(2)

    async def in_turn(stores: Stores, bundle: list[ClaimedFile]) -> str:
        async with turns:
            return _text(await _split_bundle(stores, bundle, claimant, buffer_bytes, joined_bytes))

    try:
        async with open_stores(settings) as stores:
            return await asyncio.gather(*(in_turn(stores, bundle) for bundle in bundles))
    except _EXPECTED as error:
        return [_text(unsplit(bundle, str(error))) for bundle in bundles]


async def _split_bundle(
    stores: Stores, files: list[ClaimedFile], claimant: str, buffer_bytes: int, joined_bytes: int
) -> SplitResult:
    keys = tuple(file.object_key for file in files)
    try:
        found = await split_files(
            stores.objects,
            files,
            claimant=claimant,
            buffer_bytes=buffer_bytes,
            joined_bytes=joined_bytes,
            clock=SystemClock(),
            ids=SystemIds(),
        )
    except Exception as error:  # noqa: BLE001 - objects that are not ours may raise anything; other objects must go on
        return unsplit(files, _sentence(error, f"The WAL object{'s' if len(keys) > 1 else ''} {listed(keys)}"))
    troubles = {key: str(trouble) for key, trouble in found.troubles.items()}
    return SplitResult(object_keys=keys, splits=found.splits, troubles=troubles)


def unsplit(files: Sequence[ClaimedFile], sentence: str) -> SplitResult:
    """Nothing was split, for one reason."""
    keys = tuple(file.object_key for file in files)
    return SplitResult(object_keys=keys, splits=(), troubles=dict.fromkeys(keys, sentence))


def recorded_together(results: Iterable[SplitResult], most_batches: int) -> list[SplitResult]:
    """Results as they are told to the brokers: in few requests, each a transaction of at most about so many rows.

    A row of the control plane is a batch or several.
    """
    gathered: list[SplitResult] = []
    batches = 0
    for result in results:
        count = sum(split.file.batch_count for split in result.splits)
        if gathered and batches + count <= most_batches:
            last = gathered[-1]
            gathered[-1] = SplitResult(
                object_keys=last.object_keys + result.object_keys,
                splits=last.splits + result.splits,
                troubles={**last.troubles, **result.troubles},
            )
            batches += count
        else:
            gathered.append(result)
            batches = count
    return gathered


def merge_task(rows: Iterable[str], stores: StoreSettings, buffer_bytes: int) -> Iterator[str]:
    """Build and upload the chains of segments that each row has a list of; a `MergeResult` for each chain."""
    chains = [decode(PlannedChain, one) for row in rows for one in json.loads(row)]
    with tempfile.TemporaryDirectory(prefix="strandline-merge-", dir=_work_directory()) as workdir:
        return iter(asyncio.run(_merge(chains, stores, Path(workdir), buffer_bytes)))


async def _merge(chains: list[PlannedChain], settings: StoreSettings, workdir: Path, buffer_bytes: int) -> list[str]:
    try:
        async with open_stores(settings) as stores:
            return [_text(await _merge_one(stores, chain, workdir, buffer_bytes)) for chain in chains]
    except _EXPECTED as error:
        return [_text(MergeResult(number=chain.number, segments=(), trouble=str(error))) for chain in chains]


async def _merge_one(stores: Stores, chain: PlannedChain, workdir: Path, buffer_bytes: int) -> MergeResult:
    done: list[UploadedSegment] = []
    trouble = ""
    try:
        async for built in merge_chain(stores, chain.segments, workdir, buffer_bytes=buffer_bytes):
            done.append(
                UploadedSegment(
                    segment_id=built.segment_id,
                    end_offset=built.end_offset,
                    custom_metadata=built.custom_metadata,
                    size_bytes=built.bytes,
                    milliseconds=round(built.seconds * 1000),
                )
            )
    except Exception as error:  # noqa: BLE001 - what is wrong with one partition must not stop the others
        trouble = _sentence(error, f"{chain.segments[0].partition.topic_partition}")
    return MergeResult(number=chain.number, segments=tuple(done), trouble=trouble)


def _work_directory() -> str | None:
    """Spark's own directory for this application, which it removes at the end; else the system's."""
    from pyspark import SparkFiles

    root = Path(SparkFiles.getRootDirectory())
    return str(root) if root.is_dir() else None


def _sentence(error: Exception, what: str) -> str:
    if isinstance(error, _EXPECTED) and not isinstance(error, OSError):
        return str(error)
    return f"{what} cannot be converted: {type(error).__name__}: {error}."


def _text(result: SplitResult | MergeResult) -> str:
    return json.dumps(encode(result), separators=(",", ":"))
