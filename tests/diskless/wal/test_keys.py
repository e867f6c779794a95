"""Keys of WAL objects say when and by whom; other keys say nothing."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.diskless.wal import keys
from tests.diskless.batches import NOON_MS

_LAST_MS = 253_402_300_799_000  # the end of the year 9999


@given(st.integers(0, _LAST_MS), st.integers(0, 2**31 - 1), st.uuids())
def test_a_key_says_its_hour_and_its_broker(created_ms: int, broker_id: int, unique: UUID) -> None:
    key = keys.make(created_ms, broker_id, unique)
    assert keys.parse(key) == (created_ms - created_ms % keys.HOUR_MS, broker_id, unique)
    assert key.startswith(keys.hour_prefix(created_ms))


def test_the_form_of_a_key() -> None:
    assert keys.make(NOON_MS, 7, UUID(int=255)) == "wal/2023111512/7-AAAAAAAAAAAAAAAAAAAA_w"


@pytest.mark.parametrize(
    "key",
    [
        "strandline-cluster.json",
        "wal/2023111512",
        "wal/2023111512/7",
        "wal/2023111512/x-AAAAAAAAAAAAAAAAAAAA_w",
        "wal/2023111524/7-AAAAAAAAAAAAAAAAAAAA_w",
        "wal/202311151/7-AAAAAAAAAAAAAAAAAAAA_w",
        "wal/2023111512/7-AAAAAAAAAAAAAAAAAAAA",
        "wal/2023111512/7-AAAAAAAAAAAAAAAAAAAA_w.tmp",
        "wal/2023111512/7-AAAAAAAAAAAAAAAAAAAA_w/more",
        "lost/2023111512/7-AAAAAAAAAAAAAAAAAAAA_w",
    ],
)
def test_other_keys_are_not_taken_for_wal_objects(key: str) -> None:
    assert keys.parse(key) is None
