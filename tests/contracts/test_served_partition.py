"""`ServedPartition`: what request handlers rely on, whatever tiers hold the records of a partition.

Each kind is a topic of a real broker: one local, one whose closed segments are in remote storage only, one diskless,
and one that was switched after half of its records, the first of which are in remote storage only. The last two are
there once more, with their oldest diskless records converted into remote segments. All tests share the broker, and each
has a topic of its own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio
from confluent_kafka.admin import AdminClient

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.errors import (
    FencedLeaderEpoch,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTxnState,
    OffsetOutOfRange,
    StrandlineError,
    TransactionCoordinatorFenced,
    UnknownLeaderEpoch,
)
from strandline.hybrid.layout import Tier
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.log import AppendOrigin
from strandline.metadata import NewTopic, TopicImage
from strandline.model import INT64_MAX
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    NOTHING,
    AbortedTransaction,
    FetchIsolation,
    ReadResult,
)
from strandline.records import Record, build_batch, iter_headers
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.replication import Append
from tests.broker import free_port
from tests.clients.switching import switch
from tests.moments import T0
from tests.pipeline.world import convert
from tests.reads import found
from tests.replication.conftest import batch
from tests.switched import is_switched
from tests.waiting import until

KINDS: dict[str, dict[str, str]] = {
    "local": {},
    "tiered": {"remote.storage.enable": "true", "internal.segment.bytes": "200", "local.retention.bytes": "1"},
    "diskless": {"diskless.enable": "true"},
}
KINDS["hybrid"] = KINDS["hybrid converted"] = KINDS["tiered"]
KINDS["converted"] = KINDS["diskless"]
RECORDS = 4
BOUNDARY = 2
HIGH_WATERMARK = FetchIsolation.HIGH_WATERMARK
CLOCK = SystemClock()
_numbers = itertools.count(1)

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Opened(NamedTuple):
    """One partition with `RECORDS` records, each in a batch of its own."""

    kind: str
    partition: ServedPartition
    partitions: Partitions

    async def append(self, records: memoryview) -> tuple[int, int]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finished(error: StrandlineError | None) -> None:
            done.set_result(None) if error is None else done.set_exception(error)

        appended = self.partition.appends.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=finished))
        if not appended.is_done:
            await done
        return appended.info.first_offset, appended.info.last_offset

    async def read(self, offset: int, isolation: FetchIsolation = HIGH_WATERMARK) -> ReadResult:
        return found(await self.answer(offset, isolation))

    async def answer(self, offset: int, isolation: FetchIsolation = HIGH_WATERMARK) -> ReadResult | StrandlineError:
        """Read as the Fetch handler does; an error is an answer, whether it is raised or not."""
        try:
            answer = self.partition.read_now(offset, 1 << 20, isolation=isolation, min_one_message=True)
        except StrandlineError as error:
            return error
        if isinstance(answer, PendingRead):
            (late,) = await self.partitions.read(
                [answer], max_bytes=1 << 20, min_one_message=True, is_wanted=lambda: True
            )
            return late
        return answer.result if isinstance(answer, FinalRead) else answer


def offsets_of(result: ReadResult) -> list[int]:
    data = b"" if result.records is None else result.records.read()
    return [offset for _, header in iter_headers(data) for offset in range(header.base_offset, header.last_offset + 1)]


@pytest.fixture(scope="module")
def address() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broker(address: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Broker]:
    properties = {
        "strandline.data.dir": str(tmp_path_factory.mktemp("broker")),
        "listeners": f"PLAINTEXT://{address}",
        "strandline.http.listen": f"127.0.0.1:{free_port()}",
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "50",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "log.retention.check.interval.ms": "50",
        "log.initial.task.delay.ms": "0",
        "inkless.consume.cache.max.bytes": "0",
    }
    async with Broker(Settings.from_properties(properties)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", params=KINDS)
async def opened(request: pytest.FixtureRequest, broker: Broker, address: str) -> AsyncIterator[Opened]:
    kind: str = request.param
    name = f"topic-{next(_numbers)}"
    wish = NewTopic(name=name, num_partitions=1, replication_factor=1, configs=KINDS[kind])
    (topic,) = await broker.controller.create_topics([wish])
    assert isinstance(topic, TopicImage), topic
    await broker.diskless.wait_served([name])
    world = Opened(kind, broker.partitions.find(name, 0), broker.partitions)
    for number in range(RECORDS):
        if kind.startswith("hybrid") and number == BOUNDARY:
            await asyncio.to_thread(switch, AdminClient({"bootstrap.servers": address}), name)
            world = world._replace(partition=await hybrid(broker, name))
        assert await world.append(batch(b"record", size=100)) == (number, number)
        if kind.endswith("converted") and number == BOUNDARY:
            while not (await asyncio.to_thread(convert, address, name)).boundaries:
                pass  # the part before it has to be in remote storage first
    remote = {"tiered": RECORDS - 2, "hybrid": 0, "hybrid converted": 0}.get(kind)
    if remote is not None:
        await until(lambda: world.partition.layout.tier_of(remote) is Tier.REMOTE)
    yield world
    await broker.controller.delete_topics([name])


async def hybrid(broker: Broker, topic: str) -> ServedPartition:
    """The partition, once it is switched."""
    await until(lambda: is_switched(broker.partitions.find(topic, 0)))
    return broker.partitions.find(topic, 0)


async def test_every_record_is_read_once_and_in_order(opened: Opened) -> None:
    seen: list[int] = []
    while len(seen) < RECORDS:
        result = await opened.read(len(seen))
        assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (RECORDS, RECORDS, 0)
        seen += offsets_of(result)
    assert seen == list(range(RECORDS))


async def test_one_answer_comes_from_one_tier(opened: Opened) -> None:
    tiers = set()
    for offset in range(RECORDS):
        tier = opened.partition.layout.tier_of(offset)
        assert {opened.partition.layout.tier_of(at) for at in offsets_of(await opened.read(offset))} == {tier}
        tiers.add(tier)
    expected = {
        "local": {Tier.LOCAL},
        "tiered": {Tier.REMOTE, Tier.LOCAL},
        "diskless": {Tier.DISKLESS},
        "hybrid": {Tier.REMOTE, Tier.LOCAL, Tier.DISKLESS},
        "converted": {Tier.REMOTE, Tier.DISKLESS},
        "hybrid converted": {Tier.REMOTE, Tier.LOCAL, Tier.DISKLESS},
    }
    assert tiers == expected[opened.kind]


@pytest.mark.parametrize("isolation", [HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED])
async def test_aborted_transactions_are_named_to_read_committed_consumers_only(
    opened: Opened, isolation: FetchIsolation
) -> None:
    wanted: list[AbortedTransaction] | None = [] if isolation is FetchIsolation.TXN_COMMITTED else None
    for offset in (0, RECORDS):
        assert (await opened.read(offset, isolation)).aborted_transactions == wanted


async def test_the_end_has_no_records_and_there_is_nothing_beyond_it(opened: Opened) -> None:
    assert (await opened.read(RECORDS)).records is None
    for offset in (RECORDS + 1, INT64_MAX):
        assert isinstance(await opened.answer(offset), OffsetOutOfRange)


async def test_deleted_records_are_out_of_range(opened: Opened) -> None:
    assert await opened.partition.newest.delete_records(2) == 2
    assert opened.partition.newest.log_start_offset == 2
    assert isinstance(await opened.answer(1), OffsetOutOfRange)
    assert offsets_of(await opened.read(2))[0] == 2
    assert await opened.partition.newest.delete_records(-1) == RECORDS
    assert (await opened.read(RECORDS)).log_start_offset == RECORDS


async def test_offsets_are_listed_across_tiers(opened: Opened) -> None:
    async def listed(timestamp: int) -> int:
        answer = await opened.partition.list_offset(timestamp, isolation=HIGH_WATERMARK, current_leader_epoch=-1)
        return answer.offset

    assert [await listed(EARLIEST), await listed(LATEST)] == [0, RECORDS]
    assert await listed(T0) == 0
    assert await listed(2**50) == NOTHING.offset


async def test_the_ends_of_tiers_are_listed(opened: Opened) -> None:
    async def listed(timestamp: int) -> int:
        answer = await opened.partition.list_offset(timestamp, isolation=HIGH_WATERMARK, current_leader_epoch=-1)
        return answer.offset

    expected = {
        "local": (0, -1),
        "tiered": (RECORDS - 1, RECORDS - 2),
        "diskless": (0, -1),
        "hybrid": (1, BOUNDARY - 1),
        "converted": (BOUNDARY + 1, BOUNDARY),
        "hybrid converted": (1, BOUNDARY),
    }[opened.kind]
    async with asyncio.timeout(30):  # the last segment of a prefix is copied when it is
        while (await listed(EARLIEST_LOCAL), await listed(LATEST_TIERED)) != expected:
            await CLOCK.sleep(0.002)


async def test_the_leader_epoch_of_the_client_is_checked(opened: Opened) -> None:
    partition, epoch = opened.partition, opened.partition.newest.leader_epoch
    partition.newest.check_leader(epoch)
    with pytest.raises(UnknownLeaderEpoch):
        partition.newest.check_leader(epoch + 1)
    assert await partition.end_offset_for_epoch(epoch, current_leader_epoch=epoch) == (epoch, RECORDS)
    with pytest.raises(UnknownLeaderEpoch):
        await partition.end_offset_for_epoch(epoch, current_leader_epoch=epoch + 1)
    assert partition.known_end_of_epoch(epoch)[0] == epoch
    if epoch > 0:
        with pytest.raises(FencedLeaderEpoch):
            partition.newest.check_leader(epoch - 1)


class Bell:
    """A watcher that counts."""

    def __init__(self) -> None:
        self.times = 0

    def notify(self) -> None:
        self.times += 1


async def test_watchers_hear_of_appends_until_they_leave(opened: Opened) -> None:
    bell = Bell()
    opened.partition.newest.watch(bell)
    await opened.append(batch(b"more"))
    heard = bell.times
    assert heard >= 1
    opened.partition.newest.unwatch(bell)
    await opened.append(batch(b"even more"))
    assert bell.times == heard


async def test_a_partition_stands_still_until_something_is_written_or_deleted(opened: Opened) -> None:
    await opened.read(RECORDS)
    partition = opened.partition
    assert partition.newest.stands_at(RECORDS, 0)
    assert partition.available_bytes(RECORDS, HIGH_WATERMARK) == 0
    assert partition.newest.without_records().high_watermark == RECORDS
    await opened.append(batch(b"more"))
    assert not partition.newest.stands_at(RECORDS, 0)
    assert partition.available_bytes(RECORDS, HIGH_WATERMARK) != 0
    await partition.newest.delete_records(1)
    assert not partition.newest.stands_at(RECORDS + 1, 0)
    assert partition.newest.stands_at(RECORDS + 1, 1)


async def test_producers_are_remembered(opened: Opened) -> None:
    await opened.append(batch(b"x", producer_id=77, sequence=0))
    assert [producer.producer_id for producer in await opened.partition.newest.active_producers()] == [77]


# Transactions

COMMITTED = FetchIsolation.TXN_COMMITTED


def of_transaction(producer_id: int, sequence: int = 0, *, epoch: int = 0, records: int = 2) -> memoryview:
    """A batch of a transaction."""
    return memoryview(
        build_batch(
            [Record(number, T0, b"key", b"value") for number in range(records)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
    )


async def end(
    opened: Opened, producer_id: int, *, is_abort: bool, epoch: int = 0, coordinator: int = 3, version: int = 0
) -> int:
    """Write a marker as the coordinator does; its offset."""
    kind = ControlType.ABORT if is_abort else ControlType.COMMIT
    marker = build_marker(
        EndTransactionMarker(kind, coordinator), producer_id=producer_id, producer_epoch=epoch, timestamp_ms=T0
    )
    info = await opened.partition.appends.append_and_wait(
        memoryview(marker), timeout_ms=30_000, transaction_version=version
    )
    return info.first_offset


async def latest(opened: Opened, isolation: FetchIsolation) -> int:
    return (await opened.partition.list_offset(LATEST, isolation=isolation, current_leader_epoch=-1)).offset


async def test_an_open_transaction_is_hidden_from_readers_of_committed_records(opened: Opened) -> None:
    assert await opened.append(of_transaction(7)) == (RECORDS, RECORDS + 1)
    await opened.append(batch(b"behind it"))
    hidden = await opened.read(RECORDS, COMMITTED)
    assert (hidden.records, hidden.high_watermark, hidden.last_stable_offset) == (None, RECORDS + 3, RECORDS)
    assert (await opened.read(RECORDS + 1, COMMITTED)).records is None
    assert offsets_of(await opened.read(RECORDS)) == [RECORDS, RECORDS + 1, RECORDS + 2]
    assert offsets_of(await opened.read(RECORDS - 1, COMMITTED)) == [RECORDS - 1]
    assert opened.partition.available_bytes(RECORDS, COMMITTED) == 0
    assert opened.partition.newest.without_records().last_stable_offset == RECORDS
    assert (await latest(opened, COMMITTED), await latest(opened, HIGH_WATERMARK)) == (RECORDS, RECORDS + 3)
    by_time = await opened.partition.list_offset(T0, isolation=COMMITTED, current_leader_epoch=-1)
    assert by_time.offset == 0
    (producer,) = await opened.partition.newest.active_producers()
    assert (producer.current_txn_start_offset, producer.coordinator_epoch) == (RECORDS, -1)


async def test_a_marker_wakes_readers_and_shows_the_records(opened: Opened) -> None:
    await opened.append(of_transaction(7))
    bell = Bell()
    opened.partition.newest.watch(bell)
    assert await end(opened, 7, is_abort=False) == RECORDS + 2
    assert bell.times >= 1
    opened.partition.newest.unwatch(bell)
    shown = await opened.read(RECORDS, COMMITTED)
    assert (offsets_of(shown), shown.aborted_transactions) == ([RECORDS, RECORDS + 1, RECORDS + 2], [])
    assert shown.last_stable_offset == RECORDS + 3
    (producer,) = await opened.partition.newest.active_producers()
    assert (producer.current_txn_start_offset, producer.coordinator_epoch) == (-1, 3)


async def test_aborted_transactions_are_named_where_they_overlap(opened: Opened) -> None:
    first, second = AbortedTransaction(7, RECORDS), AbortedTransaction(8, RECORDS + 2)
    await opened.append(of_transaction(7))
    await opened.append(of_transaction(8))
    assert await end(opened, 7, is_abort=True) == RECORDS + 4
    # The second one is open: what is below it can be read, with a marker that is beyond.
    shown = await opened.read(RECORDS, COMMITTED)
    assert (offsets_of(shown), shown.aborted_transactions) == ([RECORDS, RECORDS + 1], [first])
    assert shown.last_stable_offset == RECORDS + 2
    assert await end(opened, 8, is_abort=True) == RECORDS + 5
    shown = await opened.read(RECORDS, COMMITTED)
    seen = offsets_of(shown)
    assert seen == list(range(RECORDS, RECORDS + 6))[: len(seen)]
    assert len(seen) >= 4, "a segment of a tiered log may end there"
    assert shown.aborted_transactions == [first, second]
    assert (await opened.read(RECORDS + 5, COMMITTED)).aborted_transactions == [second]
    assert (await opened.read(RECORDS)).aborted_transactions is None
    await opened.append(batch(b"later"))
    assert (await opened.read(RECORDS + 6, COMMITTED)).aborted_transactions == []


async def test_whoever_was_replaced_is_fenced(opened: Opened) -> None:
    await opened.append(of_transaction(7, epoch=1))
    with pytest.raises(InvalidProducerEpoch):
        await end(opened, 7, is_abort=True, epoch=0)
    with pytest.raises(InvalidProducerEpoch):
        await end(opened, 7, is_abort=True, epoch=1, version=2)
    await end(opened, 7, is_abort=True, epoch=2, version=2)
    with pytest.raises(TransactionCoordinatorFenced):
        await end(opened, 7, is_abort=True, epoch=2, coordinator=2)
    with pytest.raises(InvalidProducerEpoch):
        await opened.append(of_transaction(7, 2, epoch=1))
    await opened.append(of_transaction(7, epoch=2))
    with pytest.raises(InvalidTxnState):
        await opened.append(batch(b"outside", producer_id=7, producer_epoch=2, sequence=2))
    assert (await opened.read(RECORDS, COMMITTED)).last_stable_offset == RECORDS + 3


async def test_clients_may_not_write_markers(opened: Opened) -> None:
    marker = build_marker(EndTransactionMarker(ControlType.COMMIT, 0), producer_id=7, producer_epoch=0, timestamp_ms=T0)
    with pytest.raises(InvalidRecord):
        await opened.append(memoryview(marker))


async def test_deleting_records_of_an_open_transaction_moves_its_beginning(opened: Opened) -> None:
    await opened.append(of_transaction(7, records=4))
    await opened.partition.newest.delete_records(RECORDS + 2)
    shown = await opened.read(RECORDS + 2, COMMITTED)
    assert (shown.records, shown.last_stable_offset) == (None, RECORDS + 2)
    await end(opened, 7, is_abort=True)
    assert (await opened.read(RECORDS + 2, COMMITTED)).aborted_transactions == [AbortedTransaction(7, RECORDS)]
