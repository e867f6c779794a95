"""The part of the demo with the tiering pipeline on Spark: WAL objects become tiered segments, and Spark reads them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from demo_clients import create_topic, delete_topic, produce
from demo_stage import Broker, DemoFailed, ask_lines, files_below, run, say, show_command, show_table, title, wait_for

from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, PARTITIONS, PRODUCERS = "tide-archive", 3, 3
ROUNDS, RECORDS, LATER, TRACE = 12, 1_500, 600, 200
MASTER = "local[*]"
# A Java that lives for seconds has no use for its best compiler, nor for collecting garbage in parallel.
SHORT_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
_UNSAID = {"connected", "spark-started", "split-started", "merge-started", "done"}

_FIGURES = """
SELECT (SELECT count(*) FROM inkless_batch JOIN inkless_log USING (log_id) WHERE topic_name = :topic),
       (SELECT count(DISTINCT file_id) FROM inkless_batch JOIN inkless_log USING (log_id)
        WHERE topic_name = :topic)
"""


class Figures(NamedTuple):
    """What there is of the topic."""

    rows: int
    files: int
    segments: int


class Sum(NamedTuple):
    """What a reader has found: how many records, and the sum of their checksums, whatever the order."""

    records: int
    checksum: int
    seconds: float


def show_pipeline(broker: Broker) -> str:
    """Convert a diskless topic, read it with a Kafka consumer and with Spark, delete it; a sentence about it.

    Without a Java for Spark, only the sentence.
    """
    title("The tiering pipeline, on Spark: diskless records become segments in remote storage")
    try:
        java = find_java()
    except PipelineFailed as error:
        say(str(error))
        return "The tiering pipeline was left out: there is no Java for Spark."
    create_topic(broker, TOPIC, PARTITIONS, diskless_enable="true")
    for number in range(ROUNDS):
        produce(broker, TOPIC, number * RECORDS, RECORDS, producers=PRODUCERS, trace_bytes=TRACE)
    before = _figures(broker)
    say(f"{ROUNDS * RECORDS:,} records of a diskless topic, in {before.files} WAL objects")
    run(broker, "tiering", "trigger", TOPIC)
    began = time.monotonic()
    with _spark() as spark:
        say(f"Spark {spark.version} on Java {java.version} started in {time.monotonic() - began:.1f} s")
        _convert(broker)
        wait_for(lambda: _wal_objects(broker) == 0, "the file cleaner to delete WAL objects of which all is converted")
        after = _figures(broker)
        show_table(
            ["", "rows in the database", "WAL objects", "tiered segments"], [("before", *before), ("after", *after)]
        )
        if after.rows or after.files or after.segments < PARTITIONS or not before.rows:
            raise DemoFailed(f"not everything was converted: {before}, then {after}")
        produce(broker, TOPIC, ROUNDS * RECORDS, LATER, producers=PRODUCERS, trace_bytes=TRACE)

        title("A Kafka consumer and a Spark DataFrame read the whole topic, segments and WAL objects")
        run(broker, "topics", "tiers", TOPIC)
        consumed, framed = _consume(broker), _read_frame(spark, broker)
    show_table(
        ["read by", "records", "checksum", "seconds"],
        [
            (name, found.records, f"{found.checksum:x}", f"{found.seconds:.2f}")
            for name, found in (("a Kafka consumer, from the broker", consumed), ("Spark, from the stores", framed))
        ],
    )
    if consumed[:2] != framed[:2] or framed.records != ROUNDS * RECORDS + LATER:
        raise DemoFailed(f"the consumer and Spark have not read the same: {consumed}, {framed}")
    say("the same records: counts and checksums are equal")
    delete_topic(broker, TOPIC)
    wait_for(
        lambda: _wal_objects(broker) == 0 and not _remote_files(broker),
        "WAL objects and segments of a deleted topic to be deleted",
    )
    return (
        f"Through the pipeline: {before.rows} rows of {before.files} WAL objects became {after.segments} segments; "
        f"{consumed.records:,} records read by a consumer and by Spark, equal."
    )


@contextmanager
def _spark() -> Iterator[SparkSession]:
    """One session for the pipeline and the DataFrame: Spark takes some seconds to start."""
    from strandline.pipeline.session import SparkOptions, open_session

    try:
        with open_session(SparkOptions(master=MASTER, has_ui=False, conf=SHORT_LIVED)) as spark:
            yield spark
    except PipelineFailed as error:
        raise DemoFailed(str(error)) from error


def _convert(broker: Broker) -> None:
    """The command runs here: it takes the session that there is."""
    arguments = ("tiering", "run", "--once", "--master", MASTER, "--topic", TOPIC)
    show_command(*arguments)
    for event in ask_lines(*arguments, "--bootstrap", broker.bootstrap):
        if event["event"] not in _UNSAID:
            say(f"  {event['message']}")


def _consume(broker: Broker) -> Sum:
    """Read all partitions to their ends, from offset 0."""
    began = time.monotonic()
    config = {"bootstrap.servers": broker.bootstrap, "group.id": "archivists", "enable.auto.commit": False}
    consumer = Consumer({**config, "enable.partition.eof": True})
    records = checksum = 0
    left = set(range(PARTITIONS))
    try:
        consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in left])
        while left:
            if time.monotonic() > began + 40:
                raise DemoFailed(f"only {records} records arrived")
            for message in consumer.consume(500, timeout=1):
                if (error := message.error()) is None:
                    records, checksum = records + 1, checksum + _checksum(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)
                else:
                    raise DemoFailed(f"the consumer got an error: {error}")
    finally:
        consumer.close()
    return Sum(records, checksum, time.monotonic() - began)


def _checksum(message: Message) -> int:
    _, timestamp = message.timestamp()
    place = f"{message.partition()} {message.offset()} {timestamp} "
    return crc32(place.encode() + (message.key() or b"") + (message.value() or b""))


def _read_frame(spark: SparkSession, broker: Broker) -> Sum:
    """The same with Spark. Brokers say where the records are, and are not asked for them."""
    from pyspark.sql import functions as f

    from strandline.tiering import register

    began = time.monotonic()
    register(spark)
    frame = spark.read.format("strandline").option("bootstrap", broker.bootstrap).option("topic", TOPIC).load()
    place = f.concat_ws(" ", "partition", "offset", f.unix_millis("timestamp"), f.lit(""))
    content = f.concat(f.encode(place, "utf-8"), "key", "value")
    (row,) = frame.select(f.crc32(content).alias("crc")).agg(f.count("*"), f.sum("crc")).collect()
    return Sum(int(row[0]), int(row[1]), time.monotonic() - began)


def _figures(broker: Broker) -> Figures:
    with closing(sqlite3.connect(f"file:{broker.data / 'metadata.db'}?mode=ro", uri=True, timeout=5)) as database:
        rows, files = database.execute(_FIGURES, {"topic": TOPIC}).fetchone()
    return Figures(rows, files, sum(path.suffix == ".log" for path in _remote_files(broker)))


def _wal_objects(broker: Broker) -> int:
    return sum(len(files_below(broker.data / "objects" / name)) for name in ("wal", "split"))


def _remote_files(broker: Broker) -> list[Path]:
    return files_below(broker.data / "remote", f"{TOPIC}-")
