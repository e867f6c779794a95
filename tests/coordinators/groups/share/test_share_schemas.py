"""Records of share groups: Kafka's bytes, and damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.groups.modern.records import (
    GroupEpochValue,
    TargetEpochValue,
    TargetValue,
    write_record_key,
)
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.groups.share.schemas import (
    ShareAssignmentValue,
    ShareMemberValue,
    ShareRecordKey,
    ShareRecordType,
    ShareRecordValue,
    ShareStatesValue,
    ShareTopicValue,
    read_share_value,
    write_share_value,
)
from strandline.errors import CorruptMessage, InvalidRequest
from tests.coordinators.groups.test_schemas import golden_records

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(max_size=20)
NUMBERS = st.frozensets(st.integers(0, 2**31 - 1), max_size=5)
PARTITIONS = st.dictionaries(st.uuids(), st.frozensets(st.integers(0, 2**31 - 1), min_size=1, max_size=5), max_size=3)
TOPICS = st.dictionaries(st.uuids(), st.builds(ShareTopicValue, NAMES, NUMBERS), max_size=3)
VALUES: dict[ShareRecordType, st.SearchStrategy[ShareRecordValue]] = {
    ShareRecordType.MEMBER: st.builds(
        ShareMemberValue,
        rack_id=st.none() | NAMES,
        client_id=NAMES,
        client_host=NAMES,
        topics=st.lists(NAMES, max_size=3).map(tuple),
    ),
    ShareRecordType.GROUP_EPOCH: st.builds(GroupEpochValue, epoch=I32, metadata_hash=I64),
    ShareRecordType.TARGET_EPOCH: st.builds(TargetEpochValue, epoch=I32, timestamp_ms=I64),
    ShareRecordType.TARGET: st.builds(TargetValue, partitions=PARTITIONS),
    ShareRecordType.ASSIGNMENT: st.builds(
        ShareAssignmentValue, member_epoch=I32, previous_epoch=I32, state=st.integers(-128, 127), partitions=PARTITIONS
    ),
    ShareRecordType.STATES: st.builds(
        ShareStatesValue,
        initializing=TOPICS,
        initialized=TOPICS,
        deleting=st.dictionaries(st.uuids(), NAMES, max_size=3),
    ),
}
RECORDS = st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind]))


def test_what_kafka_wrote_is_written_the_same(kafka_classic: Path) -> None:
    kinds = set()
    for raw_key, raw_value in golden_records(kafka_classic):
        key = read_key(raw_key)
        if isinstance(key, ShareRecordKey):
            kinds.add(key.kind)
            assert write_record_key(key) == raw_key
            assert raw_value is not None
            assert write_share_value(read_share_value(key.kind, raw_value)) == raw_value
    assert kinds == set(ShareRecordType)


@given(RECORDS)
def test_values_are_read_as_they_were_written(record: tuple[ShareRecordType, ShareRecordValue]) -> None:
    kind, value = record
    assert read_share_value(kind, write_share_value(value)) == value


@given(st.sampled_from(ShareRecordType), NAMES, NAMES)
def test_keys_are_read_as_they_were_written(kind: ShareRecordType, group_id: str, name: str) -> None:
    of_member = kind in (ShareRecordType.MEMBER, ShareRecordType.TARGET, ShareRecordType.ASSIGNMENT)
    key = ShareRecordKey(kind, group_id, name if of_member else "")
    assert read_key(write_record_key(key)) == key


@given(RECORDS, st.data())
def test_a_value_that_is_cut_short_is_corrupt(
    record: tuple[ShareRecordType, ShareRecordValue], data: st.DataObject
) -> None:
    kind, value = record
    raw = write_share_value(value)
    if kind is ShareRecordType.TARGET_EPOCH and isinstance(value, TargetEpochValue) and not value.timestamp_ms:
        raw = raw[:-1]  # without its tags a value is read as one without tags
    kept = data.draw(st.integers(0, len(raw) - 2))
    with pytest.raises(CorruptMessage):
        read_share_value(kind, raw[:kept])


def test_a_newer_version_is_not_guessed() -> None:
    raw = b"\x00\x01" + write_share_value(GroupEpochValue(epoch=1))[2:]
    with pytest.raises(CorruptMessage, match="have version 0; this record of type 11 has 1"):
        read_share_value(ShareRecordType.GROUP_EPOCH, raw)


def test_a_name_that_no_record_can_hold_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="longer than the 32767"):
        write_record_key(ShareRecordKey(ShareRecordType.GROUP_EPOCH, "g" * 40_000))
