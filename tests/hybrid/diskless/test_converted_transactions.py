"""Transactions across tiers: in a prefix, in converted segments and in rows, and on both sides of the boundaries.

A consumer that skips what it is told to skip sees what was committed, and nothing else, wherever records are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.broker import Broker
from strandline.config import Settings
from strandline.errors import StrandlineError, TransactionAbortable
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.log import AppendOrigin
from strandline.metadata import NewTopic, TopicImage
from strandline.reads import AbortedTransaction, FetchIsolation, ReadResult
from strandline.records import Record, build_batch, iter_headers, read_records
from strandline.records.control import ControlType, EndTransactionMarker, build_marker, read_marker
from strandline.replication import Append
from tests.broker import free_port
from tests.clients.switching import switch
from tests.moments import T0
from tests.pipeline.world import convert
from tests.reads import found
from tests.switched import is_switched, prefix_of
from tests.waiting import until

DISKLESS = {"diskless.enable": "true"}
TIERED = {"remote.storage.enable": "true", "internal.segment.bytes": "200", "local.retention.bytes": "1"}


@dataclass
class Topic:
    """A topic of one partition, and what was written to it."""

    broker: Broker
    address: str
    sequences: dict[int, int] = field(default_factory=dict)
    values: dict[int, list[bytes]] = field(default_factory=dict)
    """Of open transactions."""
    committed: list[bytes] = field(default_factory=list)

    @property
    def partition(self) -> ServedPartition:
        return self.broker.partitions.find("t", 0)

    async def data(self, producer_id: int, value: bytes) -> int:
        """One record of a transaction; its offset."""
        sequence = self.sequences.get(producer_id, 0)
        batch = build_batch(
            [Record(0, T0, None, value)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finished(error: StrandlineError | None) -> None:
            done.set_result(None) if error is None else done.set_exception(error)

        appended = self.partition.appends.append(
            Append(memoryview(batch), acks=-1, origin=AppendOrigin.CLIENT, done=finished)
        )
        if not appended.is_done:
            await done
        self.sequences[producer_id] = sequence + 1
        self.values.setdefault(producer_id, []).append(value)
        return appended.info.first_offset

    async def end(self, producer_id: int, *, is_abort: bool) -> int:
        kind = ControlType.ABORT if is_abort else ControlType.COMMIT
        end = EndTransactionMarker(kind, 1)
        marker = build_marker(end, producer_id=producer_id, producer_epoch=0, timestamp_ms=T0)
        info = await self.partition.appends.append_and_wait(memoryview(marker), timeout_ms=30_000)
        values = self.values.pop(producer_id, [])
        self.committed += [] if is_abort else values
        return info.first_offset

    async def convert(self) -> int:
        """Convert what is decided; the read boundary afterwards."""
        boundaries = (await asyncio.to_thread(convert, self.address, "t")).boundaries
        (boundary,) = boundaries.values()
        return boundary

    async def switch(self) -> None:
        await asyncio.to_thread(switch, AdminClient({"bootstrap.servers": self.address}), "t")

    async def wait_switched(self) -> None:
        await until(lambda: is_switched(self.partition))

    async def read(self, offset: int) -> ReadResult:
        isolation = FetchIsolation.TXN_COMMITTED
        answer = self.partition.read_now(offset, 1 << 20, isolation=isolation, min_one_message=True)
        if isinstance(answer, PendingRead):
            (late,) = await self.broker.partitions.read(
                [answer], max_bytes=1 << 20, min_one_message=True, is_wanted=lambda: True
            )
            return found(late)
        return found(answer.result if isinstance(answer, FinalRead) else answer)

    async def seen(self, offset: int = 0) -> list[bytes]:
        """The values that a consumer gets from `offset` on, up to the last stable offset."""
        values: list[bytes] = []
        while True:
            result = await self.read(offset)
            if result.records is None:
                assert offset == result.last_stable_offset
                return values
            assert result.aborted_transactions is not None
            values += _kept(result.records.read(), result.aborted_transactions)
            offset = max(header.next_offset for _, header in iter_headers(result.records.read()))


def _kept(data: bytes, aborted: list[AbortedTransaction]) -> list[bytes]:
    """What a client gives to its application."""
    waiting, skipped, values = sorted(aborted, key=lambda one: one.first_offset), set[int](), []
    for position, header in iter_headers(data):
        batch = data[position : position + header.size]
        while waiting and waiting[0].first_offset <= header.last_offset:
            skipped.add(waiting.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and marker.is_abort:
                skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            values += [record.value or b"" for record in read_records(batch)]
    return values


@asynccontextmanager
async def open_topic(directory: Path, configs: dict[str, str]) -> AsyncIterator[Topic]:
    address = f"127.0.0.1:{free_port()}"
    properties = {
        "strandline.data.dir": str(directory),
        "listeners": f"PLAINTEXT://{address}",
        "strandline.http.listen": f"127.0.0.1:{free_port()}",
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "50",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "log.retention.check.interval.ms": "50",
        "log.initial.task.delay.ms": "0",
        "inkless.consume.cache.max.bytes": "0",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        wish = NewTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
        (made,) = await broker.controller.create_topics([wish])
        assert isinstance(made, TopicImage), made
        await broker.diskless.wait_served(["t"])
        yield Topic(broker, address)


async def across_the_read_boundary(topic: Topic) -> None:
    """An abort whose marker is in rows when its records are in a segment; and one that is wholly in the next one."""
    start = await topic.data(7, b"aborted, converted first")
    await topic.data(8, b"open while it is converted")
    await topic.end(7, is_abort=True)
    assert await topic.convert() == start + 1, "what is not decided is not converted"
    assert await topic.seen() == topic.committed
    await topic.end(8, is_abort=False)
    assert await topic.seen() == topic.committed
    await topic.data(9, b"aborted in one segment")
    await topic.end(9, is_abort=True)
    await topic.data(9, b"committed")
    end = await topic.end(9, is_abort=False)
    assert await topic.convert() == end + 1
    assert await topic.seen() == topic.committed
    await topic.data(7, b"later")
    assert await topic.seen() == topic.committed
    await topic.end(7, is_abort=False)
    assert await topic.seen() == topic.committed


async def test_transactions_of_a_topic_that_was_born_diskless(tmp_path: Path) -> None:
    async with open_topic(tmp_path, DISKLESS) as topic:
        await across_the_read_boundary(topic)
        assert await topic.seen(1) == topic.committed, "a reader in the middle of an aborted transaction skips the rest"


async def test_transactions_below_and_above_the_boundary_of_a_switch(tmp_path: Path) -> None:
    async with open_topic(tmp_path, TIERED) as topic:
        await topic.data(7, b"aborted while classic")
        await topic.end(7, is_abort=True)
        await topic.data(8, b"committed while classic")
        await topic.data(9, b"aborted too")
        await topic.end(8, is_abort=False)
        await topic.end(9, is_abort=True)
        await topic.switch()
        await topic.wait_switched()
        assert await topic.seen() == [b"committed while classic"]
        while not (await asyncio.to_thread(convert, topic.address, "t")).boundaries:
            await topic.data(7, b"committed until the prefix is copied")
            await topic.end(7, is_abort=False)
        await across_the_read_boundary(topic)


async def test_a_switch_waits_for_open_transactions_and_lets_none_begin(tmp_path: Path) -> None:
    async with open_topic(tmp_path, TIERED) as topic:
        await topic.data(7, b"open")
        await topic.switch()

        async def begun_and_ended() -> None:
            async with asyncio.timeout(30):
                while True:
                    await topic.data(8, b"new")
                    await topic.end(8, is_abort=False)
                    await asyncio.to_thread(lambda: None)  # the switch has to come to its turn

        with pytest.raises(TransactionAbortable, match="while its topic is being switched to diskless"):
            await begun_and_ended()
        await topic.data(7, b"goes on")
        assert not is_switched(topic.partition)
        await topic.end(7, is_abort=True)
        await topic.wait_switched()
        boundary = await topic.data(8, b"begins in the suffix")
        assert boundary == prefix_of(topic.partition).end
        assert await topic.seen() == topic.committed
        await topic.end(8, is_abort=False)
        assert await topic.seen() == topic.committed
        (one,) = [one for one in await topic.partition.newest.active_producers() if one.producer_id == 7]
        assert one.coordinator_epoch == 1, "the control plane has it from the prefix"


@pytest.mark.parametrize("is_converted", [False, True])
async def test_a_transaction_whose_beginning_is_deleted_is_aborted_all_the_same(
    tmp_path: Path, is_converted: bool
) -> None:
    async with open_topic(tmp_path, DISKLESS) as topic:
        for value in (b"one", b"two", b"three"):
            await topic.data(7, value)
        assert await topic.partition.newest.delete_records(2) == 2
        end = await topic.end(7, is_abort=True)
        if is_converted:
            assert await topic.convert() == end + 1
        assert (await topic.read(2)).aborted_transactions == [AbortedTransaction(7, 0)]
        assert await topic.seen(2) == []
