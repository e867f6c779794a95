"""The records of consumer groups, as they have to be in the log."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordKey, write_consumer_value
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.runtime import KeyValue


def current_consumer_record(groups: Mapping[str, Group], group_id: str, raw_key: bytes) -> KeyValue | None:
    """What the log has to have for a key; None for the record of a classic group, which writes its own."""
    group, key = groups.get(group_id), read_key(raw_key)
    if isinstance(key, ConsumerRecordKey):
        value = group.value_of(key) if isinstance(group, ConsumerGroup) else None
        return raw_key, None if value is None else write_consumer_value(value)
    return None if isinstance(group, ClassicGroup) else (raw_key, None)
