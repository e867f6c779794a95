"""Consumers that catch up, and many small objects for them."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.diskless.reader import DisklessReader
from strandline.diskless.values import DisklessRead
from strandline.errors import KafkaStorageError, OffsetOutOfRange, StrandlineError
from strandline.model import TopicIdPartition
from strandline.reads import ReadResult
from strandline.records import read_header
from tests.diskless.reader.lake import LONG_AGO, PARTITIONS, Lake, Write, data_of

MIB = 1 << 20


async def fetch(
    reader: DisklessReader, offsets: dict[TopicIdPartition, int], max_bytes: int
) -> dict[TopicIdPartition, ReadResult | StrandlineError]:
    """One Fetch of several partitions, as the handler does it: from memory what is there, the rest by one read."""
    found: dict[TopicIdPartition, ReadResult | StrandlineError] = {}
    missing: list[DisklessRead] = []
    for partition, offset in offsets.items():
        request = DisklessRead(partition, offset, max_bytes)
        try:
            now = reader.read_now(request, min_one_message=True)
        except OffsetOutOfRange as error:
            found[partition] = error
            continue
        if now is None:
            missing.append(request)
        else:
            found[partition] = now
    if missing:
        results = await reader.read(missing, max_bytes=4 * max_bytes)
        found.update((request.partition, result) for request, result in zip(missing, results, strict=True))
    return found


def end_of(data: bytes, offset: int) -> int:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        assert header.base_offset <= offset or position, "no gap"
        offset, position = header.next_offset, position + header.size
    return offset


class Consumer:
    """Reads some partitions to the end, asks again after errors that pass, and begins at the log start if it must."""

    def __init__(self, lake: Lake, reader: DisklessReader, partitions: Sequence[TopicIdPartition]) -> None:
        self._lake, self._reader = lake, reader
        self.offsets = dict.fromkeys(partitions, 0)
        self.errors = 0

    async def run(self, max_bytes: int) -> None:
        while True:
            behind = {one: at for one, at in self.offsets.items() if at < self._lake.high_watermark(one)}
            if not behind:
                return
            for partition, answer in (await fetch(self._reader, behind, max_bytes)).items():
                self._take(partition, answer)
            await self._lake.clock.sleep(0)

    def _take(self, partition: TopicIdPartition, answer: ReadResult | StrandlineError) -> None:
        offset = self.offsets[partition]
        if isinstance(answer, OffsetOutOfRange):
            known = self._reader.known_offsets(partition)
            assert known is not None
            assert known[1] > offset, "only what was deleted is skipped"
            self.offsets[partition] = known[1]
        elif isinstance(answer, StrandlineError):
            assert isinstance(answer, KafkaStorageError), answer
            self.errors += 1
        else:
            data = data_of(answer)
            expected = b"".join(batch.data for batch in self._lake.batches_from(partition, offset))
            assert expected.startswith(data), "exactly the committed records, in order"
            self.offsets[partition] = end_of(data, offset)


async def small_objects(lake: Lake, count: int, partitions: int = 8) -> None:
    for _ in range(count):
        await lake.write(*(Write(partition, size=200, timestamp=LONG_AGO) for partition in PARTITIONS[:partitions]))
