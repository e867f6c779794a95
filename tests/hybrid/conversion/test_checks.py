"""Requests of the tiering API that nobody in their right mind sends, and what others could do with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from strandline.conversion_api.values import NewSplit, SplitFile
from strandline.diskless.wal import split_keys
from strandline.errors import InvalidRequest
from strandline.hybrid.conversion.checks import LONGEST_CLAIM_MS, check_claim_ms, check_claimant, check_split
from strandline.model import INT64_MAX
from tests.partitions import id_partition

P = id_partition(UUID(int=7), 3)
KEY = split_keys.make(0, "me", P.topic_id, P.partition, 10, UUID(int=9))
FILE = SplitFile(
    object_key=KEY,
    base_offset=10,
    last_offset=19,
    size_bytes=700,
    batch_count=2,
    max_timestamp=-1,
    leader_epochs=((0, 10), (2, 15)),
)


@pytest.mark.parametrize("claimant", ["", "  ", "x" * 201, "\ud800", "a\nb", "\x00"])
def test_claimants(claimant: str) -> None:
    check_claimant("spark:host:4711:1")
    with pytest.raises(InvalidRequest, match="A claimant has to be named"):
        check_claimant(claimant)


@pytest.mark.parametrize("claim_ms", [0, -1, LONGEST_CLAIM_MS + 1, 1 << 61, INT64_MAX])
def test_claims_do_not_last_for_ever(claim_ms: int) -> None:
    check_claim_ms(LONGEST_CLAIM_MS)
    with pytest.raises(InvalidRequest, match="which is a day"):
        check_claim_ms(claim_ms)


@pytest.mark.parametrize(
    "key",
    [
        "strandline-cluster.json",
        "../x",
        "wal/2026010112/1-KUlsb3ZldGlkZXMuLi4uLg",
        split_keys.make(0, "me", UUID(int=8), P.partition, 10, UUID(int=9)),
        split_keys.make(0, "me", P.topic_id, 4, 10, UUID(int=9)),
        split_keys.make(0, "me", P.topic_id, P.partition, 11, UUID(int=9)),
    ],
)
def test_only_split_files_of_the_partition_are_recorded(key: str) -> None:
    """Those that are refused are deleted: nothing else must be."""
    check_split(NewSplit(P, FILE))
    with pytest.raises(InvalidRequest, match="is not the key of a split file"):
        check_split(NewSplit(P, replace(FILE, object_key=key)))


@pytest.mark.parametrize(
    "changes",
    [
        {"last_offset": 9},
        {"last_offset": INT64_MAX},
        {"size_bytes": 0},
        {"batch_count": 0},
        {"batch_count": -7},
        {"batch_count": 11},
        {"leader_epochs": ()},
        {"leader_epochs": ((0, 11),)},
        {"leader_epochs": ((-1, 10),)},
        {"leader_epochs": ((0, 10), (2, 20))},
        {"leader_epochs": ((2, 10), (1, 15))},
        {"leader_epochs": ((0, 10), (1, 10))},
    ],
)
def test_contents_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="cannot have"):
        check_split(NewSplit(P, replace(FILE, **changes)))
