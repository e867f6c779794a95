"""WAL objects and plans for them, made by hand: what the writer writes, and what the control plane would say of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from strandline.clock import SystemClock, SystemIds
from strandline.conversion_api.values import (
    BegunSegment,
    ClaimedFile,
    EpochStart,
    NewSplit,
    PlannedRow,
    PlannedSplit,
    SegmentDescription,
    SplitFile,
)
from strandline.diskless.values import DisklessAppend
from strandline.diskless.wal import keys, pack
from strandline.model import Offset, TopicIdPartition, TopicPartition
from strandline.pipeline.merging import BuiltSegment, merge_chain
from strandline.pipeline.segments import metadata_of
from strandline.pipeline.splitting import SplitBundle, split_files
from strandline.pipeline.stores import Stores, StoreSettings, open_stores
from strandline.records import TimestampType, build_batch, read_header
from strandline.records.codecs import Codec
from strandline.records.record import Record
from strandline.remote.values import IndexType
from tests.diskless.batches import TOPIC_A

NOW = 1_700_000_000_000
ORDERS = TopicIdPartition(TOPIC_A, TopicPartition("orders", 0))
OTHERS = TopicIdPartition(TOPIC_A, TopicPartition("orders", 1))
BUFFER = 1024 * 1024
CLAIMANT = "test:1"


class Produced(NamedTuple):
    """A batch as its producer sent it, and what became of it."""

    data: bytes
    partition: TopicIdPartition = ORDERS
    leader_epoch: int = 0
    is_refused: bool = False
    """It is in the object, but not in the log: a duplicate."""
    begins_row: bool = False


def produced(
    count: int = 3,
    *,
    size: int = 20,
    timestamp: int = NOW,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
) -> bytes:
    """A batch of a producer."""
    return bytes(
        build_batch(
            [Record(i, timestamp, b"key", bytes([i % 251]) * size) for i in range(count)],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
        )
    )


@dataclass
class WalWorld:
    """Both stores in directories, and the ends of the logs."""

    stores: Stores
    root: Path
    ends: dict[TopicIdPartition, Offset] = field(default_factory=dict)
    ids: SystemIds = field(default_factory=SystemIds)

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def workdir(self) -> Path:
        return self.root / "work"

    async def write(self, batches: Sequence[Produced], *, log_append_time: int | None = None) -> ClaimedFile:
        """A WAL object, and the plan to split all of it."""
        kind = TimestampType.CREATE_TIME if log_append_time is None else TimestampType.LOG_APPEND_TIME
        appends = [
            DisklessAppend(one.partition, bytearray(one.data), read_header(one.data), kind, one.leader_epoch)
            for one in batches
        ]
        packed = pack(appends, broker_id=1, cluster_id="a-cluster", created_ms=NOW)
        key = keys.make(NOW, 1, self.ids.uuid())
        await self.stores.objects.put(key, packed.parts)
        splits = []
        placed = [(batches[index], position) for index, position in packed.placed]
        for partition, mine in groupby(placed, key=lambda pair: pair[0].partition):
            rows: list[PlannedRow] = []
            for batch, position in mine:
                self._add_row(rows, batch, position, kind, log_append_time)
            if rows:
                splits.append(PlannedSplit(partition=partition, rows=tuple(rows)))
        return ClaimedFile(file_id=1, object_key=key, size=packed.size, expires_at_ms=NOW, splits=tuple(splits))

    def _add_row(
        self, rows: list[PlannedRow], batch: Produced, position: int, kind: TimestampType, append_time: int | None
    ) -> None:
        if batch.is_refused:
            return
        header, base = read_header(batch.data), self.ends.get(batch.partition, 0)
        last = base + header.last_offset_delta
        self.ends[batch.partition] = last + 1
        time = header.max_timestamp if append_time is None else append_time
        row = PlannedRow(base, last, position, len(batch.data), kind, time, header.max_timestamp, batch.leader_epoch)
        before = rows[-1] if rows else None
        if (
            before is not None
            and not batch.begins_row
            and before.leader_epoch == row.leader_epoch
            and before.byte_offset + before.byte_size == position
        ):
            rows[-1] = before._replace(last_offset=last, byte_size=before.byte_size + row.byte_size)
        else:
            rows.append(row)

    async def split(self, file: ClaimedFile, *, buffer_bytes: int = BUFFER) -> tuple[NewSplit, ...]:
        """The splits of one WAL object. Raises ConversionFailed."""
        found = await self.split_together([file], buffer_bytes=buffer_bytes)
        for trouble in found.troubles.values():
            raise trouble
        return found.splits

    async def split_together(
        self, files: Sequence[ClaimedFile], *, buffer_bytes: int = BUFFER, joined_bytes: int = BUFFER
    ) -> SplitBundle:
        return await split_files(
            self.stores.objects,
            files,
            claimant=CLAIMANT,
            buffer_bytes=buffer_bytes,
            joined_bytes=joined_bytes,
            clock=SystemClock(),
            ids=self.ids,
        )

    async def bytes_of(self, split: NewSplit) -> bytes:
        return bytes(await self.stores.objects.get(split.file.object_key))

    def begun(
        self,
        splits: Sequence[SplitFile],
        *,
        partition: TopicIdPartition = ORDERS,
        previous: SegmentDescription | None = None,
        index_interval_bytes: int = 4096,
    ) -> BegunSegment:
        """What a leader would answer who is asked to begin a segment of these split files."""
        epochs: list[EpochStart] = []
        for split in splits:
            epochs += (entry for entry in split.leader_epochs if not epochs or entry[0] > epochs[-1][0])
        return BegunSegment(
            partition=partition,
            leader_epoch=9,
            segment=SegmentDescription(
                segment_id=self.ids.uuid(),
                start_offset=splits[0].base_offset,
                end_offset=splits[-1].last_offset,
                max_timestamp_ms=max(split.max_timestamp for split in splits),
                broker_id=1,
                event_timestamp_ms=NOW,
                segment_size_in_bytes=sum(split.size_bytes for split in splits),
                leader_epochs=tuple(epochs),
            ),
            splits=tuple(splits),
            previous=previous,
            index_interval_bytes=index_interval_bytes,
            producer_id_expiration_ms=86_400_000,
        )

    async def merge(self, *chain: BegunSegment, buffer_bytes: int = BUFFER) -> list[BuiltSegment]:
        self.workdir.mkdir(exist_ok=True)
        merging = merge_chain(self.stores, chain, self.workdir, buffer_bytes=buffer_bytes)
        async with aclosing(merging):
            return [built async for built in merging]

    async def files(self, begun: BegunSegment) -> dict[str, bytes]:
        """All files of a segment in remote storage, by their suffixes."""
        metadata, remote = metadata_of(begun.partition, begun.segment), self.stores.remote
        log = await remote.fetch_log_segment(metadata, 0, begun.segment.segment_size_in_bytes)
        return {"log": bytes(log)} | {
            kind.value: await remote.fetch_index(metadata, kind)
            for kind in IndexType
            if kind is not IndexType.TRANSACTION
        }

    def uploaded(self) -> list[Path]:
        """Everything in remote storage."""
        return [path for path in (self.root / "remote").rglob("*") if path.is_file() and ".uploads" not in path.parts]


@asynccontextmanager
async def open_wal_world(root: Path) -> AsyncIterator[WalWorld]:
    for name in ("objects", "remote"):
        (root / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "strandline.objects.url": f"file://{root / 'objects'}",
        "rsm.config.url": f"file://{root / 'remote'}",
        "remote.log.storage.system.enable": "true",
    }
    async with open_stores(StoreSettings(settings)) as stores:
        yield WalWorld(stores, root)
