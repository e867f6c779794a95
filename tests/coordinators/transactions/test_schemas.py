"""Records of `__transaction_state`: those of Apache Kafka are read, and written again byte for byte."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.transactions.metadata import of_value
from strandline.coordinators.transactions.schemas import TransactionValue, read_key, read_value, write_key, write_value
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import CorruptMessage
from strandline.model import TopicPartition
from tests.golden import kafka_classic as kafka_classic
from tests.golden import read_json


def _bytes(found: dict[str, Any]) -> bytes:
    return base64.b64decode(found["b64"]) if "b64" in found else found["s"].encode()


def _records(kafka_classic: Path) -> Iterator[tuple[bytes, bytes]]:
    for partition in range(3):
        path = kafka_classic / "expected" / "classic" / "records" / f"__transaction_state-{partition}.json"
        for segment in read_json(path)["segments"]:
            for batch in segment["batches"]:
                yield from ((_bytes(record["key"]), _bytes(record["value"])) for record in batch["records"])


def test_records_of_kafka_are_written_again_byte_for_byte(kafka_classic: Path) -> None:
    """But for the order of the partitions of a topic, which is that of a hash table in Kafka."""
    states: Counter[TransactionState] = Counter()
    for key, data in _records(kafka_classic):
        transactional_id = read_key(key)
        assert transactional_id is not None
        assert write_key(transactional_id) == key
        value = read_value(data)
        again = write_value(of_value(transactional_id, value).value(), version=1)
        if len(value.partitions) <= 1:
            assert again == data
        else:
            assert (len(again), read_value(again)) == (len(data), value)
        states[value.state] += 1
    assert sum(states.values()) == 200
    assert set(states) == set(TransactionState) - {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}


_VALUES = st.builds(
    TransactionValue,
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(-1, 32767),
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from(list(TransactionState)[1:]),
    partitions=st.sets(
        st.builds(TopicPartition, st.text(min_size=1, max_size=9), st.integers(0, 2**31 - 1)), max_size=9
    ).map(lambda found: tuple(sorted(found))),
    last_update_ms=st.integers(-1, 2**62),
    start_ms=st.integers(-1, 2**62),
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer_id=st.integers(-1, 2**63 - 1),
    client_version=st.integers(0, 2),
)


@given(_VALUES)
def test_what_is_written_is_read(value: TransactionValue) -> None:
    assert read_value(write_value(value, version=1)) == value
    plain = read_value(write_value(value, version=0))
    assert (plain.producer_id, plain.state, plain.partitions) == (value.producer_id, value.state, value.partitions)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00\x02", "versions 0 and 1; this record has version 2"),
        (b"\x00\x01" + bytes(8) + bytes(2) + bytes(4) + b"\x09", "cannot be in state 9"),
        (b"\x00\x01\x00", "is cut"),
    ],
)
def test_records_that_make_no_sense(data: bytes, why: str) -> None:
    with pytest.raises(CorruptMessage, match=why):
        read_value(data)


def test_keys_of_newer_versions_are_skipped() -> None:
    assert read_key(b"\x00\x01\x00\x00") is None
