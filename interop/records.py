"""Topics full of records, written and read with librdkafka: what the suites about files compare before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SECONDS = 60.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Records = dict[tuple[str, int, int], tuple[bytes | None, bytes | None, int]]
"""Key, value and timestamp by topic, partition and offset."""


def create_topics(bootstrap: str, topics: Mapping[str, Mapping[str, str]], partitions: int) -> None:
    """Create topics with these settings."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    wanted = [NewTopic(name, num_partitions=partitions, config=dict(config)) for name, config in topics.items()]
    for created in admin.create_topics(wanted).values():
        created.result(SECONDS)


def write_all_codecs(bootstrap: str, topics: Sequence[str], partitions: int, *, is_idempotent: bool = True) -> None:
    """All codecs, keys that repeat; a new producer for each codec, so several producer ids."""
    for number, codec in enumerate(CODECS):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 2,
                "compression.type": codec,
                "enable.idempotence": is_idempotent,
                "batch.num.messages": 40,
            }
        )
        for topic in topics:
            for record in range(2000):
                value = f"{codec} {record} ".encode() * 10
                headers: Any = [("codec", codec.encode())]
                producer.produce(topic, value, b"key-%d" % (record % 300), record % partitions, headers=headers)
            producer.poll(0)
        if producer.flush(SECONDS):
            raise RuntimeError(f"records in codec {codec} (round {number}) were not acknowledged")


def read_all(
    bootstrap: str, topics: Sequence[str], partitions: int, *, commit: bool = False, settings: Any = None
) -> Records:
    """Every record from the beginning of each partition to its end. `settings` are more ones for the consumer."""
    consumer_settings = {
        "bootstrap.servers": bootstrap,
        "log_level": 2,
        "group.id": "dump-readers",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        **(settings or {}),
    }
    records: Records = {}
    with closing(Consumer(consumer_settings)) as consumer:
        consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for topic in topics for one in range(partitions)])
        ends = 0
        while ends < len(topics) * partitions:
            message = consumer.poll(SECONDS)
            if message is None:
                raise RuntimeError("the broker does not give the records back")
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                ends += 1
            elif error is not None:
                raise KafkaException(error)
            else:
                place = (message.topic() or "", message.partition() or 0, message.offset() or 0)
                records[place] = (message.key(), message.value(), message.timestamp()[1])
        if commit:
            consumer.commit(asynchronous=False)
    return records
