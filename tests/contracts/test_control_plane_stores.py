"""The contract of StoreRecords: which store the objects are in."""

from __future__ import annotations

import asyncio

from strandline.controlplane import SqlControlPlane
from strandline.controlplane.store_records import DISKLESS_STORE, REMOTE_STORE, RecordedStore
from tests.controlplane.making import A, batch, commit

FIRST = RecordedStore("first", "file:///first")
SECOND = RecordedStore("second", "file:///second")


async def test_the_first_store_is_recorded_and_stays(plane: SqlControlPlane) -> None:
    assert await plane.stores.recorded_store(DISKLESS_STORE) is None
    assert await plane.stores.record_store(DISKLESS_STORE, FIRST, instead_of=None) == FIRST
    assert await plane.stores.record_store(DISKLESS_STORE, SECOND, instead_of=None) == FIRST
    assert await plane.stores.recorded_store(DISKLESS_STORE) == FIRST
    assert await plane.stores.recorded_store(REMOTE_STORE) is None


async def test_of_several_brokers_at_once_one_is_heard(plane: SqlControlPlane) -> None:
    stores = [RecordedStore(str(number), f"file:///{number}") for number in range(8)]
    heard = await asyncio.gather(*(plane.stores.record_store(DISKLESS_STORE, one, instead_of=None) for one in stores))
    assert len(set(heard)) == 1


async def test_a_store_is_left_for_another_only_while_it_holds_nothing(plane: SqlControlPlane) -> None:
    await plane.stores.record_store(DISKLESS_STORE, FIRST, instead_of=None)
    assert await plane.stores.record_store(DISKLESS_STORE, SECOND, instead_of="other") == FIRST
    assert await plane.stores.record_store(DISKLESS_STORE, SECOND, instead_of=FIRST.store_id) == SECOND
    await commit(plane, "a", batch(A))
    assert await plane.stores.record_store(DISKLESS_STORE, FIRST, instead_of=SECOND.store_id) == SECOND
    await plane.stores.replace_store(DISKLESS_STORE, FIRST)
    assert await plane.stores.recorded_store(DISKLESS_STORE) == FIRST


async def test_a_store_may_be_accepted_that_is_the_first(plane: SqlControlPlane) -> None:
    await plane.stores.replace_store(REMOTE_STORE, FIRST)
    assert await plane.stores.recorded_store(REMOTE_STORE) == FIRST


async def test_the_oldest_and_the_newest_objects_are_the_proof(plane: SqlControlPlane) -> None:
    assert await plane.stores.store_proofs(2) == ([], [])
    for key in ("a", "b", "c"):
        await commit(plane, key, batch(A))
    assert await plane.stores.store_proofs(2) == (["a", "b"], ["c", "b"])
    assert await plane.stores.store_proofs(5) == (["a", "b", "c"], ["c", "b", "a"])


async def test_objects_that_are_to_be_deleted_are_no_proof_and_hold_no_store(plane: SqlControlPlane) -> None:
    await plane.stores.record_store(DISKLESS_STORE, FIRST, instead_of=None)
    await commit(plane, "a", batch(A))
    await plane.lifecycle.delete_topics([A.topic_id])
    assert await plane.stores.store_proofs(1) == ([], [])
    assert await plane.stores.record_store(DISKLESS_STORE, SECOND, instead_of=FIRST.store_id) == SECOND
