"""The records of share groups, as they have to be in the log."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.schemas import ShareRecordKey, write_share_value
from strandline.coordinators.runtime import KeyValue


def current_share_record(groups: Mapping[str, Group], group_id: str, raw_key: bytes) -> KeyValue:
    """What the log has to have for a key."""
    group, key = groups.get(group_id), read_key(raw_key)
    found = group.value_of(key) if isinstance(group, ShareGroup) and isinstance(key, ShareRecordKey) else None
    return raw_key, None if found is None else write_share_value(found)
