"""The data source gives what a Kafka consumer gets: every column, wherever the records are, and while they move."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException

from strandline.conversion_api.values import PlanRead
from strandline.pipeline.client import TieringClient
from strandline.pipeline.source.batch import TopicBatchReader, read_partition
from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.options import parse_options
from strandline.tiering import register
from tests.broker import BrokerProcess, free_port, running_broker
from tests.clients.drivers import CODECS, ConfluentDriver, Received, Sent
from tests.clients.switching import HYBRID, switch, wait_state
from tests.clients.tiering import QUICK, SECONDS, TIERED, create
from tests.moments import T0
from tests.pipeline.world import convert
from tests.spark import scene
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(600)

SETTINGS = {**QUICK, **scene.SETTINGS, "log.diskless.enable": "false", "inkless.tiering.max.segment.bytes": "20000"}
DISKLESS = {"diskless.enable": "true"}
KINDS = ("classic", "tiered", "diskless", "switched", "converted")
PARTITIONS = 2
PER_CODEC = 30
COUNT = PER_CODEC * len(CODECS)


def records(codec: str, first: int) -> list[Sent]:
    """With and without keys, values and headers; one for each millisecond, but for a few that come late."""
    return [
        Sent(
            None
            if number % 7 == 0
            else b"".join(sha256(b"%d %d" % (number, part)).digest() for part in range(number % 9)),
            key=None if number % 3 == 0 else str(number).encode(),
            headers=(("codec", codec.encode()), ("none", None)) if number % 5 == 0 else (),
            timestamp=T0 + number - (50 if number % 11 == 0 else 0),
        )
        for number in range(first, first + PER_CODEC)
    ]


def fill(broker: BrokerProcess, *topics: str, codecs: Sequence[str] = CODECS) -> None:
    """The same records in all partitions of some topics."""
    for codec in codecs:
        settings = {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 50}
        producer = Producer({**settings, "enable.idempotence": True})
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message, failed: list[KafkaError] = failed) -> None:
            failed.extend([error] if error is not None else [])

        for sent in records(codec, CODECS.index(codec) * PER_CODEC):
            for topic, partition in product(topics, range(PARTITIONS)):
                producer.produce(
                    topic,
                    sent.value,
                    sent.key,
                    partition,
                    timestamp=sent.timestamp or 0,
                    headers=list(sent.headers),
                    on_delivery=delivered,
                )
        assert producer.flush(SECONDS) == 0
        assert failed == []


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a topic of each kind."""
    with running_broker(tmp_path_factory.mktemp("source") / "data", SETTINGS) as found:
        admin = AdminClient({"bootstrap.servers": found.bootstrap})
        small = {**TIERED, "internal.segment.bytes": "6000"}
        for topic, config in zip(KINDS, ({}, small, DISKLESS, small, DISKLESS), strict=True):
            create(admin, topic, config, partitions=PARTITIONS)
        fill(found, *KINDS, codecs=CODECS[:2])
        switch(admin, "switched")
        wait_state(found, "switched", HYBRID)
        fill(found, *KINDS, codecs=CODECS[2:4])
        done = convert(found.bootstrap, "switched", "converted")
        assert len(done.boundaries) == 2 * PARTITIONS
        fill(found, *KINDS, codecs=CODECS[4:])
        for partition in range(PARTITIONS):
            wait_until(partial(remote_segments, found, "tiered", partition), "segments of tiered")
        yield found


def remote_segments(broker: BrokerProcess, topic: str, partition: int) -> int:
    """How many segments of a partition are read from remote storage."""
    with TieringClient(broker.bootstrap) as client:
        return len(client.plan_read(PlanRead(topic=topic, partition=partition)).segments)


@pytest.fixture
def read(spark: SparkSession, broker: BrokerProcess) -> Callable[..., DataFrame]:
    """A DataFrame over topics of the broker."""
    register(spark)

    def load(topic: str | None, **options: object) -> DataFrame:
        reader = spark.read.format("strandline").option("bootstrap", broker.bootstrap)
        for name, value in {"topic": topic, **options}.items():
            if value is not None:
                reader = reader.option(name, value if isinstance(value, str | bool | int) else json.dumps(value))
        return reader.load()

    return load


def received(frame: DataFrame) -> dict[int, list[Received]]:
    """What a query has found, by partition and in the order of offsets."""
    names = ["partition", "offset", "unix_millis(timestamp)", "key", "value"]
    headers = "headers" in frame.columns
    found: dict[int, list[Received]] = {}
    for row in frame.selectExpr(*names, *(["headers"] if headers else [])).collect():
        pairs = tuple((one["key"], _bytes(one["value"])) for one in (row["headers"] if headers else None) or ())
        record = Received(row[0], row[1], row[2], _bytes(row[3]), _bytes(row[4]), pairs)
        found.setdefault(record.partition, []).append(record)
    return {number: sorted(rows, key=lambda record: record.offset) for number, rows in found.items()}


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def consumed(broker: BrokerProcess, topic: str, count: int = COUNT) -> dict[int, list[Received]]:
    """The same, by a Kafka consumer."""
    return {
        number: ConfluentDriver().consume(broker.bootstrap, topic, count, partition=number)
        for number in range(PARTITIONS)
    }


@pytest.mark.parametrize("topic", KINDS)
def test_every_record_and_every_column(read: Callable[..., DataFrame], broker: BrokerProcess, topic: str) -> None:
    frame = read(topic, includeHeaders=True)
    assert received(frame) == consumed(broker, topic)
    kinds = frame.groupBy("topic", "timestampType").count().collect()
    assert [tuple(row) for row in kinds] == [(topic, 0, COUNT * PARTITIONS)]


def test_the_columns_are_those_of_sparks_kafka_source(read: Callable[..., DataFrame]) -> None:
    columns = {field.name: field.dataType.simpleString() for field in read("classic").schema}
    assert columns == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
    }


def test_ranges_of_offsets_and_times(read: Callable[..., DataFrame], broker: BrokerProcess) -> None:
    every = consumed(broker, "converted")
    starts, ends = {"0": 35, "1": -2}, {"0": 100, "1": -1}
    found = received(read("converted", startingOffsets={"converted": starts}, endingOffsets={"converted": ends}))
    assert [record.offset for record in found[0]] == list(range(35, 100))
    assert len(found[1]) == COUNT
    moments = received(read("converted", startingTimestamp=T0 + 40, endingTimestamp=T0 + 120))
    for number, rows in every.items():
        first = next(record.offset for record in rows if record.timestamp >= T0 + 40)
        last = next(record.offset for record in rows if record.timestamp >= T0 + 120)
        assert [record.offset for record in moments[number]] == list(range(first, last))
    assigned = received(read(None, assign={"diskless": [1]}, maxRecordsPerPartition=40))
    assert [record.offset for record in assigned[1]] == list(range(COUNT))
    assert assigned.keys() == {1}


@pytest.mark.parametrize("topic", ["tiered", "converted"])
def test_filters_are_passed_on_and_leave_out_what_they_should(
    read: Callable[..., DataFrame], broker: BrokerProcess, topic: str
) -> None:
    every = consumed(broker, topic)
    narrow = read(topic, bytesPerTask=3000).where("partition = 1 and offset between 20 and 90")
    assert [record.offset for record in received(narrow)[1]] == list(range(20, 91))
    assert narrow.rdd.getNumPartitions() < read(topic, bytesPerTask=3000).rdd.getNumPartitions() / 2
    late = read(topic).where(f"timestamp > timestamp_millis({T0 + 110}) and timestamp <= timestamp_millis({T0 + 140})")
    for number, rows in every.items():
        wanted = [record.offset for record in rows if T0 + 110 < record.timestamp <= T0 + 140]
        assert [record.offset for record in received(late)[number]] == wanted
    assert received(read(topic, pushFilters=False).where("offset = 3"))[0][0].offset == 3


def run_once(spark: SparkSession, broker: BrokerProcess, topic: str, directory: Path, **options: object) -> None:
    """A stream that ends when it has read what is there."""
    reader = spark.readStream.format("strandline").option("bootstrap", broker.bootstrap).option("topic", topic)
    for name, value in {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 90, **options}.items():
        reader = reader.option(name, value if isinstance(value, str | bool | int) else json.dumps(value))
    query = (
        reader.load()
        .selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        .writeStream.format("json")
        .option("path", str(directory / "out"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def written(spark: SparkSession, directory: Path) -> list[tuple[int, int]]:
    """Partition and offset of every record that a stream has written."""
    rows = spark.read.json(str(directory / "out")).collect()
    return sorted((row["partition"], row["offset"]) for row in rows)


@pytest.mark.long
def test_a_stream_goes_on_where_its_checkpoint_ends(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    register(spark)
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), "streamed", DISKLESS, partitions=PARTITIONS)
    fill(broker, "streamed", codecs=CODECS[:2])
    run_once(spark, broker, "streamed", tmp_path)
    fill(broker, "streamed", codecs=CODECS[2:])
    convert(broker.bootstrap, "streamed")
    run_once(spark, broker, "streamed", tmp_path)
    assert written(spark, tmp_path) == [(number, offset) for number in range(PARTITIONS) for offset in range(COUNT)]


def recreate(broker: BrokerProcess, topic: str, config: dict[str, str]) -> None:
    """Delete a topic, and create one of the same name."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(SECONDS)
    wait_until(lambda: topic not in admin.list_topics(timeout=SECONDS).topics, f"the end of {topic}")
    create(admin, topic, config, partitions=PARTITIONS)


def test_a_stream_does_not_take_a_new_topic_for_the_old_one(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    register(spark)
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), "again", DISKLESS, partitions=PARTITIONS)
    fill(broker, "again", codecs=CODECS[:2])
    run_once(spark, broker, "again", tmp_path)
    recreate(broker, "again", DISKLESS)
    fill(broker, "again", codecs=CODECS[:1])
    with pytest.raises(PySparkException, match="Topic again was deleted and created again since the checkpoint"):
        run_once(spark, broker, "again", tmp_path)
    run_once(spark, broker, "again", tmp_path, failOnDataLoss=False)
    fill(broker, "again", codecs=CODECS[1:2])
    run_once(spark, broker, "again", tmp_path)
    once = [(number, offset) for number in range(PARTITIONS) for offset in range(2 * PER_CODEC)]
    assert written(spark, tmp_path) == sorted(2 * once)
    with pytest.raises(PySparkException, match=r"startingOffsets of again-0 is 1000, but .* no records from 60 on"):
        run_once(spark, broker, "again", tmp_path / "other", startingOffsets={"again": {"0": 1000, "1": -2}})


def test_a_query_does_not_take_a_new_topic_for_the_old_one(broker: BrokerProcess) -> None:
    """Records that only brokers have: they are asked for by the topic's id."""
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), "replaced", {}, partitions=PARTITIONS)
    fill(broker, "replaced", codecs=CODECS[:1])
    options = parse_options({"bootstrap": broker.bootstrap, "topic": "replaced"}, is_stream=False)
    tasks = TopicBatchReader(options).partitions()
    recreate(broker, "replaced", {})
    fill(broker, "replaced", codecs=CODECS[:1])
    with pytest.raises(SourceFailed, match="replaced was deleted and created again since the query was planned"):
        list(read_partition(tasks[0]))


def test_every_record_while_conversion_runs(
    read: Callable[..., DataFrame], broker: BrokerProcess, spark: SparkSession
) -> None:
    """Records are written and converted while queries run: each query finds all that were there when it began."""
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), "moving", DISKLESS, partitions=PARTITIONS)
    fill(broker, "moving", codecs=CODECS[:1])
    is_over = threading.Event()
    rounds: list[int] = []

    def work() -> None:
        while not is_over.is_set():
            fill(broker, "moving", codecs=CODECS[1:3])
            convert(broker.bootstrap, "moving")
            rounds.append(1)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            for _ in range(3):
                with TieringClient(broker.bootstrap) as client:
                    (status,) = client.statuses(["moving"])
                found = received(read("moving", bytesPerTask=5000))
                for partition in status.partitions:
                    offsets = [record.offset for record in found[partition.partition]]
                    assert offsets == list(range(len(offsets)))
                    assert len(offsets) >= partition.high_watermark
        finally:
            is_over.set()
        working.result()
    assert rounds
    last = PER_CODEC * (1 + 2 * len(rounds))
    assert received(read("moving", includeHeaders=True)) == consumed(broker, "moving", last)


def test_transactions_of_a_diskless_topic(read: Callable[..., DataFrame], broker: BrokerProcess) -> None:
    """Aborted records are left out, before they are converted and after that, and open ones are not waited for."""
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), "till", DISKLESS)
    till = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "till"})
    till.init_transactions(SECONDS)

    def sell(*values: str) -> None:
        till.begin_transaction()
        for value in values:
            till.produce("till", value)
        till.flush(SECONDS)

    def seen(isolation: str) -> list[str]:
        rows = received(read("till", isolation=isolation)).get(0, [])
        return [str(record.value or b"", "utf-8") for record in rows]

    sell("bread", "milk")
    till.commit_transaction(SECONDS)
    sell("beer")
    till.abort_transaction(SECONDS)
    sell("cheese")
    till.commit_transaction(SECONDS)
    sell("open")
    assert seen("read_committed") == ["bread", "milk", "cheese"]
    assert seen("read_uncommitted") == ["bread", "milk", "beer", "cheese", "open"]
    till.abort_transaction(SECONDS)
    convert(broker.bootstrap, "till")
    assert remote_segments(broker, "till", 0)
    assert seen("read_committed") == ["bread", "milk", "cheese"]
    assert seen("read_uncommitted") == ["bread", "milk", "beer", "cheese", "open"]


def test_what_cannot_be_read_is_said(read: Callable[..., DataFrame]) -> None:
    away = free_port()
    with pytest.raises(PySparkException, match=f"No broker of 127.0.0.1:{away} could tell the partitions"):
        read("classic", bootstrap=f"127.0.0.1:{away}", timeoutMs=500).count()
    with pytest.raises(PySparkException, match="There is no topic nowhere"):
        read("nowhere").count()
    with pytest.raises(PySparkException, match=r"has no option topics\. It has assign, bootstrap"):
        read("classic", topics="classic").count()
    with pytest.raises(PySparkException, match="failOnDataLoss=false"):
        read("classic", endingOffsets={"classic": {"0": 10_000, "1": 10}}).count()
    with pytest.raises(PySparkException, match="startingOffsets of classic-0 is 10000, but"):
        read("classic", startingOffsets={"classic": {"0": 10_000, "1": 10}}).count()
