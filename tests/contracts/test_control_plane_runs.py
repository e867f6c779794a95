"""The contract of the control plane: which runs of the pipeline may have left split files, and whose those are."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.controlplane import SqlControlPlane
from strandline.controlplane.conversion.values import LATE_SPLITS_MS, GivenUpRun
from tests.controlplane.converting import CLAIM_MS, LATER, ME, RIVAL, claim, keys, record_of
from tests.controlplane.making import A, B, HandSetClock, batch, commit


async def given_up(plane: SqlControlPlane) -> Sequence[str]:
    return [run.claimant for run in await plane.runs.given_up_runs(limit=10)]


async def only_run(plane: SqlControlPlane) -> GivenUpRun:
    (run,) = await plane.runs.given_up_runs(limit=10)
    return run


async def test_a_run_is_given_up_with_the_last_of_its_claims(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", batch(A))
    await commit(plane, "two", batch(A))
    time.now = LATER
    assert await given_up(plane) == []
    first, second = (await claim(plane)).files
    assert await given_up(plane) == []
    assert (await plane.claims.record_splits(record_of(first))).refused == {}
    assert await given_up(plane) == []
    await plane.claims.release_wal_file_claims(ME, [second.object_key])
    assert await given_up(plane) == [ME]


async def test_an_expired_claim_may_be_renewed_for_as_long_again(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", batch(A))
    time.now = LATER
    await claim(plane)
    time.now += CLAIM_MS * 3 // 2
    assert await given_up(plane) == []
    await plane.claims.renew_claims(ME, claim_ms=CLAIM_MS)
    time.now += CLAIM_MS * 3 // 2
    assert await given_up(plane) == []
    time.now += CLAIM_MS // 2
    assert await given_up(plane) == [ME]


async def test_who_lost_its_claims_to_another_is_given_up(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", batch(A))
    time.now = LATER
    await claim(plane)
    time.now += CLAIM_MS
    assert keys(await claim(plane, RIVAL)) == ["one"]
    assert await given_up(plane) == [ME]


async def test_what_is_recorded_is_never_taken(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", batch(A), batch(B))
    time.now = LATER
    (file,) = (await claim(plane)).files
    record = record_of(file)
    await plane.claims.record_splits(record)
    recorded = [split.file.object_key for split in record.splits]
    assert await plane.runs.unrecorded(["split/x", *recorded, "split/y"]) == ["split/x", "split/y"]
    run = await only_run(plane)
    assert await plane.runs.take_leftovers(run, [*recorded, "split/x"], broker_id=1) == ["split/x"]
    assert await plane.runs.take_leftovers(run, [*recorded, "split/x"], broker_id=1) == []
    assert [file.object_key for file in await plane.files.files_to_delete(marked_for_ms=0, limit=10)] == ["split/x"]


async def test_what_was_taken_is_refused(plane: SqlControlPlane, time: HandSetClock) -> None:
    """A driver that comes back after its claims were given up."""
    await commit(plane, "one", batch(A))
    time.now = LATER
    (file,) = (await claim(plane)).files
    record = record_of(file)
    time.now += 2 * CLAIM_MS
    written = [split.file.object_key for split in record.splits]
    assert await plane.runs.take_leftovers(await only_run(plane), written, broker_id=1) == written
    assert [*(await plane.claims.record_splits(record)).refused] == written
    (again,) = (await claim(plane)).files
    assert (await plane.claims.record_splits(record_of(again))).refused == {}


async def test_a_run_that_has_claimed_again_keeps_what_it_writes(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", batch(A))
    time.now = LATER
    await claim(plane)
    await plane.claims.release_wal_file_claims(ME, ["one"])
    run = await only_run(plane)
    await claim(plane)
    assert await plane.runs.take_leftovers(run, ["split/new"], broker_id=1) is None
    await plane.claims.release_wal_file_claims(ME, ["one"])
    assert await plane.runs.take_leftovers(run, ["split/new"], broker_id=1) is None
    await plane.runs.run_looked_at(run)
    later = await only_run(plane)
    assert (later.claims, later.is_seen) == (run.claims + 1, False)
    assert await plane.runs.unrecorded(["split/new"]) == ["split/new"]


async def test_a_run_is_looked_at_twice_and_forgotten(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", batch(A))
    time.now = LATER
    await claim(plane)
    await plane.claims.release_wal_file_claims(ME, ["one"])
    await plane.runs.run_looked_at(await only_run(plane))
    assert await given_up(plane) == []
    time.now += LATE_SPLITS_MS
    run = await only_run(plane)
    assert run.is_seen
    await plane.runs.run_looked_at(run)
    time.now += LATE_SPLITS_MS
    assert await given_up(plane) == []
    await claim(plane)
    await plane.claims.release_wal_file_claims(ME, ["one"])
    assert not (await only_run(plane)).is_seen
