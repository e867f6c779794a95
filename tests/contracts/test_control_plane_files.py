"""The contract of the control plane: WAL files and their end."""

from __future__ import annotations

from strandline.controlplane import Refusal, SqlControlPlane, WalFile
from tests.controlplane.making import MISSING, NOW, TOPIC, A, B, C, HandSetClock, bases, batch, commit, rows_of, wal

EVER = 1 << 60
DAY_MS = 86_400_000


async def test_files_come_page_by_page(plane: SqlControlPlane) -> None:
    for number in range(5):
        await commit(plane, f"f{number}", batch(A))
    seen: list[WalFile] = []
    while page := await plane.files.files_after(seen[-1].file_id if seen else 0, 2):
        seen += page
    assert [file.object_key for file in seen] == [f"f{number}" for number in range(5)]
    assert seen[0] == WalFile(seen[0].file_id, "f0", 150, 1, NOW, None)


async def test_the_rows_of_a_file(plane: SqlControlPlane) -> None:
    await commit(plane, "zero", batch(B, 2))
    await commit(plane, "one", batch(A, 2), batch(B, 3), batch(C, 4), batch(B, 1))
    _, one = await plane.files.files_after(0, 10)
    rows = [
        (p, row.base_offset, row.last_offset, row.byte_offset) for p, row in await plane.files.rows_of_file(one.file_id)
    ]
    assert rows == [(A, 0, 1, 0), (B, 2, 4, 100), (C, 0, 3, 200), (B, 5, 5, 300)]
    assert await plane.files.rows_of_file(12_345) == []


async def test_files_are_known_from_their_commit_on_and_for_a_day_after_their_end(plane: SqlControlPlane) -> None:
    await commit(plane, "used", batch(A))
    await commit(plane, "unused", batch(MISSING))
    assert await plane.reads.known_files(["used", "unused", "never seen"]) == {"used": True, "unused": False}
    (unused,) = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10)
    await plane.files.forget_files([unused.file_id])
    assert await plane.reads.known_files(["unused"]) == {"unused": False}
    assert await plane.reads.known_files([]) == {}


async def test_the_longest_marked_come_first_a_page_at_a_time(plane: SqlControlPlane, time: HandSetClock) -> None:
    for number, now in enumerate([30, 10, 20, 10]):
        time.now = now
        await commit(plane, f"f{number}", batch(MISSING))
    time.now = 40
    first = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=3)
    assert [file.object_key for file in first] == ["f1", "f3", "f2"]
    assert [file.object_key for file in await plane.files.files_to_delete(marked_for_ms=30, limit=3)] == ["f1", "f3"]
    await plane.files.forget_files([file.file_id for file in first[:2]])  # then the store throttles
    rest = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=3)
    assert [file.object_key for file in rest] == ["f2", "f0"]


async def test_only_marked_files_can_be_forgotten(plane: SqlControlPlane) -> None:
    await commit(plane, "used", batch(A))
    await commit(plane, "unused", batch(MISSING))
    used, unused = await plane.files.files_after(0, 10)
    await plane.files.forget_files([used.file_id, unused.file_id, 12_345])
    assert [file.object_key for file in await plane.files.files_after(0, 10)] == ["used"]
    assert await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10) == []
    assert len(await rows_of(plane, A)) == 1
    await plane.files.forget_files([])


async def test_orphans_are_taken_and_their_commit_is_refused(plane: SqlControlPlane) -> None:
    await commit(plane, "known", batch(A))
    taken = await plane.files.take_orphans(["known", "lost", "other"], broker_id=3)
    assert sorted(taken) == ["lost", "other"]
    assert await plane.files.take_orphans(["lost"], broker_id=3) == []
    assert await plane.files.take_orphans([], broker_id=3) == []
    stale, fresh = await plane.commits.commit_files([wal("lost", batch(A), batch(MISSING)), wal("new", batch(A))])
    assert [answer.refusal for answer in stale] == [Refusal.STALE_FILE] * 2
    assert bases(fresh) == [1]
    marked = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10)
    assert sorted(file.object_key for file in marked) == ["lost", "other"]


async def test_a_very_late_commit_of_a_deleted_object_is_refused(plane: SqlControlPlane) -> None:
    await plane.files.take_orphans(["lost"], broker_id=3)
    await commit(plane, "emptied", batch(A))
    await plane.trimming.delete_records({A: -1})
    marked = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10)
    await plane.files.forget_files([file.file_id for file in marked])
    assert await plane.files.files_after(0, 10) == []
    for key in ("lost", "emptied"):
        assert [answer.refusal for answer in await commit(plane, key, batch(A))] == [Refusal.STALE_FILE]


async def test_an_object_that_appears_again_after_its_deletion_is_taken_again(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    await plane.files.take_orphans(["lost"], broker_id=3)
    (file,) = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10)
    await plane.files.forget_files([file.file_id])
    time.now += 5
    assert await plane.files.take_orphans(["lost"], broker_id=3) == ["lost"]
    (again,) = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10)
    assert again.marked_for_deletion_at_ms == NOW + 5


async def test_rows_of_deleted_files_do_not_pile_up(plane: SqlControlPlane, time: HandSetClock) -> None:
    for number in range(5):
        await plane.files.take_orphans([f"lost{number}"], broker_id=3)
        marked = await plane.files.files_to_delete(marked_for_ms=-EVER, limit=10)
        await plane.files.forget_files([file.file_id for file in marked])
        time.now += DAY_MS + 1_000
    async with plane.store.transaction() as tx:
        assert await tx.fetch("SELECT object_key FROM inkless_file ORDER BY object_key") == [("lost4",)]


async def test_rows_of_a_topic_that_is_being_deleted_still_count(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A))
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET is_deleted = TRUE WHERE log_id = 1")
    (file,) = await plane.files.files_after(0, 10)
    assert [partition.topic_id for partition, _ in await plane.files.rows_of_file(file.file_id)] == [TOPIC]
    assert file.marked_for_deletion_at_ms is None
