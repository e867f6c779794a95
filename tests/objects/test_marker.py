"""Two clusters never share a prefix by accident."""

from __future__ import annotations

import asyncio
import json

import pytest

from strandline.clock import SystemClock
from strandline.objects import MARKER_KEY, ObjectStoreMisconfigured, claim_prefix
from strandline.objects.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())


async def test_the_first_cluster_gets_the_prefix_and_keeps_it(store: MemoryStore) -> None:
    await claim_prefix(store, "cluster-a")
    assert json.loads(bytes(await store.get(MARKER_KEY))) == {"cluster_id": "cluster-a"}
    await claim_prefix(store, "cluster-a")


async def test_another_cluster_is_told_what_to_do(store: MemoryStore) -> None:
    await claim_prefix(store, "cluster-a")
    with pytest.raises(ObjectStoreMisconfigured) as raised:
        await claim_prefix(store, "cluster-b")
    for word in ("memory://", "cluster-a", "cluster-b", "strandline.objects.url", MARKER_KEY):
        assert word in str(raised.value)


async def test_brokers_of_one_cluster_may_claim_at_the_same_time(store: MemoryStore) -> None:
    await asyncio.gather(*(claim_prefix(store, "cluster-a") for _ in range(8)))


async def test_of_two_clusters_that_claim_at_the_same_time_one_gets_it(store: MemoryStore) -> None:
    results = await asyncio.gather(
        *(claim_prefix(store, f"cluster-{number}") for number in range(4)), return_exceptions=True
    )
    assert sum(result is None for result in results) == 1
    assert all(isinstance(result, ObjectStoreMisconfigured) for result in results if result is not None)


@pytest.mark.parametrize("text", [b"", b"not json", b"[]", b"{}", b"\xff"])
async def test_a_marker_that_says_nothing_is_not_overwritten(store: MemoryStore, text: bytes) -> None:
    await store.put(MARKER_KEY, [text])
    with pytest.raises(ObjectStoreMisconfigured, match=MARKER_KEY):
        await claim_prefix(store, "cluster-a")
    assert bytes(await store.get(MARKER_KEY)) == text
