"""The contract of SplitClaims: who may split which file, and which split files count."""

from __future__ import annotations

from dataclasses import replace

from strandline.controlplane import SqlControlPlane
from strandline.controlplane.conversion.values import RowToSplit, TieringRule
from strandline.records import TimestampType
from tests.controlplane.converting import (
    AT_ONCE,
    CLAIM_MS,
    LATER,
    ME,
    RIVAL,
    claim,
    count,
    fill,
    keys,
    new_split,
    offsets,
    record_of,
    record_together,
    split_all,
    states,
)
from tests.controlplane.making import NOW, OTHER_TOPIC, TOPIC, A, B, C, HandSetClock, batch, commit, marker, wal


async def test_a_claim_tells_what_to_split(plane: SqlControlPlane, time: HandSetClock) -> None:
    append_time = TimestampType.LOG_APPEND_TIME
    await commit(plane, "f0", batch(A, 3), batch(A, 2), batch(B, 4, timestamp_type=append_time, leader_epoch=2))
    time.now = LATER
    (file,) = (await claim(plane)).files
    assert (file.object_key, file.size, file.expires_at_ms) == ("f0", 350, LATER + CLAIM_MS)
    a, b = file.splits
    assert (a.partition, a.rows) == (A, (RowToSplit(0, 4, 0, 200, 0, NOW, 1_000, 0),))
    assert (b.partition, b.rows) == (B, (RowToSplit(0, 3, 200, 100, 1, NOW, NOW, 2),))


async def test_rows_of_several_runs_are_one_split(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "f0", batch(A, 3), batch(A, 2, leader_epoch=4), batch(B))
    time.now = LATER
    (file,) = (await claim(plane)).files
    assert offsets(file.splits) == [(0, 0, 4), (1, 0, 0)]
    assert [row.leader_epoch for row in file.splits[0].rows] == [0, 4]


async def test_only_what_is_old_enough_is_eligible(plane: SqlControlPlane, time: HandSetClock) -> None:
    rules = (TieringRule(TOPIC, 1_000), TieringRule(OTHER_TOPIC, 100_000))
    await commit(plane, "f0", batch(A, timestamp=NOW), batch(C, timestamp=NOW))
    time.now = NOW + 1_000
    assert keys(await claim(plane, rules=rules)) == []
    time.now = NOW + 1_001
    (file,) = (await claim(plane, rules=rules)).files
    assert offsets(file.splits) == [(0, 0, 0)]
    assert file.splits[0].partition == A
    recorded = await plane.claims.record_splits(record_of(file))
    assert recorded.refused == {}
    assert recorded.files_done == ()  # C follows later, and is anybody's
    time.now = NOW + 100_001
    (again,) = (await claim(plane, RIVAL, rules=rules)).files
    assert [split.partition for split in again.splits] == [C]
    assert (await plane.claims.record_splits(record_of(again, RIVAL))).files_done == ("f0",)
    assert keys(await claim(plane, RIVAL, rules=rules)) == []


async def test_the_age_of_a_row_is_that_of_its_records_or_of_its_commit(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    await commit(plane, "old records", batch(A, timestamp=0))
    await commit(plane, "no time", batch(B, timestamp=-1))
    await commit(plane, "records from the future", batch(C, timestamp=10 * NOW))
    rules = [TieringRule(topic, NOW - 1) for topic in (TOPIC, OTHER_TOPIC)]
    assert keys(await claim(plane, rules=rules)) == ["old records"]
    time.now = 2 * NOW
    assert keys(await claim(plane, rules=rules)) == ["old records", "no time", "records from the future"]


async def test_never_means_until_it_is_triggered(plane: SqlControlPlane, time: HandSetClock) -> None:
    rules = (TieringRule(TOPIC, -1),)
    await commit(plane, "f0", batch(A))
    time.now = LATER
    assert keys(await claim(plane, rules=rules)) == []
    assert await plane.wishes.trigger_tiering(TOPIC) == LATER
    time.now = LATER + 1
    await commit(plane, "f1", batch(A))
    assert keys(await claim(plane, rules=rules)) == ["f0"]


async def test_nothing_of_paused_deleted_or_unnamed_topics_is_claimed(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    await commit(plane, "f0", batch(A), batch(C))
    time.now = LATER
    assert keys(await claim(plane, rules=())) == []
    (only_c,) = (await claim(plane, topics=(C.topic,))).files
    assert [split.partition for split in only_c.splits] == [C]
    await plane.wishes.pause_tiering(OTHER_TOPIC, is_paused=True)
    (only_a,) = (await claim(plane)).files
    assert [split.partition for split in only_a.splits] == [A]
    await plane.wishes.pause_tiering(OTHER_TOPIC, is_paused=False)
    await plane.lifecycle.delete_topics([TOPIC])
    (only_c,) = (await claim(plane)).files
    assert [split.partition for split in only_c.splits] == [C]


async def test_a_file_is_claimed_by_one_until_the_claim_expires(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B)
    time.now = LATER
    assert keys(await claim(plane, max_files=2)) == ["f0", "f1"]
    assert keys(await claim(plane, RIVAL)) == ["f2"]
    assert keys(await claim(plane)) == ["f0", "f1"]  # its own again
    time.now += CLAIM_MS
    assert keys(await claim(plane, RIVAL, max_files=1)) == ["f0"]
    await plane.claims.release_wal_file_claims(RIVAL, ["f0", "f1"])
    assert keys(await claim(plane)) == ["f0", "f1", "f2"]


async def test_claims_that_are_renewed_do_not_expire(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A)
    time.now = LATER
    (first, *_) = (await claim(plane)).files
    await plane.claims.record_splits(record_of(first))
    time.now += CLAIM_MS - 1
    renewed = await plane.claims.renew_claims(ME, claim_ms=CLAIM_MS)
    assert (renewed.files, renewed.segments) == (2, 0)  # a file that is done needs no claim
    time.now += CLAIM_MS - 1
    assert keys(await claim(plane, RIVAL)) == []
    assert (await plane.claims.renew_claims(RIVAL, claim_ms=CLAIM_MS)).files == 0


async def test_files_and_rows_of_one_claim_are_bounded(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B, C, files=4)
    time.now = LATER
    first = await claim(plane, max_rows=1)
    assert keys(first) == ["f0"]  # the first counts always
    second = await claim(plane, max_rows=6, after_file_id=first.next_file_id)
    assert keys(second) == ["f1", "f2"]
    third = await claim(plane, max_rows=6, after_file_id=second.next_file_id)
    assert (keys(third), third.next_file_id) == (["f3"], 0)


async def test_recorded_splits_are_split_once(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B, files=1)
    time.now = LATER
    (file,) = (await claim(plane)).files
    request = record_of(file, attempt="first")
    for _ in range(2):  # the answer was lost
        answer = await plane.claims.record_splits(request)
        assert (answer.refused, answer.files_done) == ({}, ("f0",))
    again = record_of(file, attempt="second")
    answer = await plane.claims.record_splits(again)
    assert set(answer.refused) == {split.file.object_key for split in again.splits}
    assert await count(plane, "inkless_split_batch") == 2
    found = await states(plane)
    assert {found[split.file.object_key] for split in request.splits} == {"uploaded"}
    assert {found[split.file.object_key] for split in again.splits} == {"deleting"}
    assert (await plane.claims.record_splits(again)).refused.keys() == answer.refused.keys()
    (merges, _) = await plane.merging.mergeable_splits([TOPIC], max_splits=10)
    (pending,) = merges.splits
    assert pending == (request.splits[0].file, LATER, NOW)


async def test_files_that_are_split_together_count_together(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B)
    time.now = LATER
    claimed = (await claim(plane)).files
    request = record_together(claimed)
    assert [(split.file.base_offset, split.file.last_offset) for split in request.splits] == [(0, 29), (0, 29)]
    for _ in range(2):  # the answer was lost
        answer = await plane.claims.record_splits(request)
        assert (answer.refused, answer.files_done) == ({}, ("f0", "f1", "f2"))
    assert await count(plane, "inkless_split_batch") == 2
    assert keys(await claim(plane, RIVAL)) == []
    # A split file that is lost makes all its rows anybody's again, in every WAL object.
    assert await plane.claims.undo_splits([request.splits[0].file.object_key]) == [request.splits[0].file.object_key]
    again = (await claim(plane, RIVAL)).files
    assert [offsets(file.splits) for file in again] == [[(0, 0, 9)], [(0, 10, 19)], [(0, 20, 29)]]


async def test_of_files_that_are_split_together_one_is_somebody_elses(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    await commit(plane, "f0", batch(A, 5))
    await commit(plane, "f1", batch(A, 5), batch(B, 5))
    await commit(plane, "f2", batch(B, 5))
    time.now = LATER
    first, second, third = (await claim(plane)).files
    time.now += CLAIM_MS
    assert keys(await claim(plane, RIVAL, max_files=1)) == ["f0"]
    request = record_together([first, second, third])
    a = request.splits[0]
    answer = await plane.claims.record_splits(request)
    assert answer.refused == {a.file.object_key: f"The WAL object f0 is claimed by {RIVAL}."}
    assert answer.files_done == ("f2",)
    (again,) = (await claim(plane, after_file_id=first.file_id)).files
    assert (again.object_key, offsets(again.splits)) == ("f1", [(0, 5, 9)])
    assert (await plane.claims.record_splits(record_of(first, RIVAL))).refused == {}


async def test_files_that_are_split_together_may_have_young_rows(plane: SqlControlPlane, time: HandSetClock) -> None:
    rules = (TieringRule(TOPIC, 1_000), TieringRule(OTHER_TOPIC, 100_000))
    await commit(plane, "f0", batch(A, 5, timestamp=NOW))
    await commit(plane, "f1", batch(A, 5, timestamp=NOW), batch(C, timestamp=NOW))
    time.now = NOW + 1_001
    answer = await plane.claims.record_splits(record_together((await claim(plane, rules=rules)).files))
    assert (answer.refused, answer.files_done) == ({}, ("f0",))
    time.now = NOW + 100_001
    assert keys(await claim(plane, RIVAL, rules=rules)) == ["f1"]


async def test_splits_of_a_file_that_another_has_claimed_are_refused(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    await fill(plane, A, files=1)
    time.now = LATER
    (file,) = (await claim(plane)).files
    time.now += CLAIM_MS
    assert keys(await claim(plane, RIVAL)) == ["f0"]
    answer = await plane.claims.record_splits(record_of(file))
    (sentence,) = answer.refused.values()
    assert sentence == f"The WAL object f0 is claimed by {RIVAL}."
    assert (await plane.claims.record_splits(record_of(file, RIVAL))).refused == {}


async def test_a_late_claimant_counts_if_nobody_else_came(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, files=1)
    time.now = LATER
    (file,) = (await claim(plane)).files
    time.now += 2 * CLAIM_MS
    assert (await plane.claims.record_splits(record_of(file))).refused == {}


async def test_splits_of_other_offsets_or_sizes_are_refused(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "f0", batch(A, 5), batch(A, 5, leader_epoch=1), batch(B, 5))
    time.now = LATER
    (file,) = (await claim(plane)).files
    first, other = (new_split(planned) for planned in file.splits)
    wrong = [
        replace(first.file, object_key="split/a", last_offset=4),
        replace(first.file, object_key="split/b", base_offset=1),
        replace(first.file, object_key="split/c", last_offset=10),
        replace(first.file, object_key="split/d", size_bytes=first.file.size_bytes + 1),
    ]
    request = record_of(file)
    splits = (*(first._replace(file=file) for file in wrong), other)
    answer = await plane.claims.record_splits(replace(request, splits=splits))
    assert set(answer.refused) == {"split/a", "split/b", "split/c", "split/d"}
    assert answer.files_done == ()
    # A part that ends between two rows is one: 0 to 4 have 100 bytes.
    half = first._replace(file=replace(first.file, object_key="split/e", last_offset=4, size_bytes=100))
    assert (await plane.claims.record_splits(replace(request, splits=(half,)))).refused == {}
    (rest,) = (await claim(plane)).files
    assert offsets(rest.splits) == [(0, 5, 9)]


async def test_objects_that_were_taken_as_orphans_do_not_count(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B, files=1)
    time.now = LATER
    (file,) = (await claim(plane)).files
    request = record_of(file)
    lost, kept = (split.file.object_key for split in request.splits)
    assert await plane.files.take_orphans([lost], broker_id=1) == [lost]
    assert list((await plane.claims.record_splits(request)).refused) == [lost]
    assert await plane.files.take_orphans([lost, kept], broker_id=1) == []  # the one is used, the other taken
    (again,) = (await claim(plane)).files
    assert offsets(again.splits) == [(0, 0, 9)]
    assert (await plane.claims.record_splits(record_of(again))).files_done == ("f0",)


async def test_rows_that_were_deleted_are_not_recorded(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B, files=1)
    time.now = LATER
    (file,) = (await claim(plane)).files
    await plane.trimming.delete_records({A: -1})
    a, b = record_of(file).splits
    answer = await plane.claims.record_splits(replace(record_of(file), splits=(a, b)))
    assert list(answer.refused) == [a.file.object_key]
    assert answer.files_done == ("f0",)
    await plane.lifecycle.delete_topics([TOPIC])
    assert set((await states(plane)).values()) == {"deleting"}
    assert await count(plane, "inkless_split_batch") == 0
    # Of a file that is gone everything is refused.
    answer = await plane.claims.record_splits(record_of(file))
    assert len(answer.refused) == 2


async def test_splits_go_with_their_rows(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A)
    time.now = LATER
    await split_all(plane)
    await plane.trimming.delete_records({A: 15})  # within the second file
    found = await states(plane)
    assert [found[key] for key in ("f0", "f1", "f2")] == ["deleting", "uploaded", "uploaded"]
    assert sorted(state for key, state in found.items() if key.startswith("split/")) == [
        "deleting",
        "uploaded",
        "uploaded",
    ]
    (merges,) = await plane.merging.mergeable_splits([TOPIC], max_splits=10)
    assert merges.next_upload_offset == 10
    assert [(split.file.base_offset, split.file.last_offset) for split in merges.splits] == [(10, 19), (20, 29)]


async def test_a_recorded_split_is_forgotten_with_its_object_and_claims_with_theirs(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    await fill(plane, A, files=1)
    time.now = LATER
    await split_all(plane)
    assert await count(plane, "inkless_wal_file_claim") == 1
    await plane.trimming.delete_records({A: -1})
    files = await plane.files.files_to_delete(marked_for_ms=0, limit=10)
    assert len(files) == 2
    await plane.files.forget_files([file.file_id for file in files])
    assert await states(plane) == {"f0": "deleted"}  # a WAL object is remembered for a day
    assert await count(plane, "inkless_wal_file_claim") == 0


async def test_the_search_begins_where_there_is_something_to_split(plane: SqlControlPlane, time: HandSetClock) -> None:
    """However many files of topics that are never converted, or that are split, lie before it."""
    await plane.commits.commit_files([wal(f"never{number}", batch(C)) for number in range(2_500)])
    await commit(plane, "f0", batch(A))
    await commit(plane, "f1", batch(A), batch(B))
    time.now = LATER
    rules = AT_ONCE[:1]
    claimed = await claim(plane, rules=rules, max_files=1)
    assert keys(claimed) == ["f0"]
    await plane.claims.record_splits(record_of(claimed.files[0]))
    assert keys(await claim(plane, rules=rules, max_files=1)) == ["f1"]


async def test_the_search_ends_where_everything_is_too_young(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "f0", batch(A))
    time.now = LATER
    await plane.commits.commit_files([wal(f"young{number}", batch(A, timestamp=LATER)) for number in range(2_500)])
    claimed = await claim(plane, rules=[TieringRule(TOPIC, 1_000)])
    assert (keys(claimed), claimed.next_file_id) == (["f0"], 0)


async def test_old_records_are_found_in_young_files(plane: SqlControlPlane, time: HandSetClock) -> None:
    """However many files lie between; an answer may be empty although there is more behind it."""
    await commit(plane, "aged", batch(A))
    time.now = LATER
    await plane.commits.commit_files([wal(f"never{number}", batch(C, timestamp=LATER)) for number in range(2_500)])
    await commit(plane, "backfill", batch(A, timestamp=0), batch(B, timestamp=0))
    rules = [TieringRule(TOPIC, 1_000)]
    found = await claim(plane, rules=rules)
    assert keys(found) == ["aged"]
    assert found.next_file_id > 0
    found = await claim(plane, rules=rules, after_file_id=found.next_file_id)
    assert (keys(found), found.next_file_id) == (["backfill"], 0)


async def test_a_hole_between_splits_is_found(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A)
    time.now = LATER
    first, second, third = (await claim(plane)).files
    await plane.claims.record_splits(record_of(first))
    await plane.claims.record_splits(record_of(third))
    time.now += CLAIM_MS
    assert keys(await claim(plane, RIVAL)) == [second.object_key]


async def test_what_is_not_decided_is_not_eligible(plane: SqlControlPlane, time: HandSetClock) -> None:
    async def eligible() -> int:
        progress = {one.log.partition: one for one in await plane.wishes.tiering_progress(AT_ONCE)}
        return progress[A].eligible_rows

    await commit(plane, "f0", batch(A, 3))
    await commit(plane, "f1", batch(A, producer=(7, 0, 0), is_transactional=True))
    await commit(plane, "f2", batch(A, producer=(8, 0, 0), is_transactional=True), batch(B))
    await commit(plane, "f3", marker(A, (7, 0), is_abort=True))
    time.now = LATER
    assert await eligible() == 2
    claimed = await claim(plane)
    assert [(file.object_key, offsets(file.splits)) for file in claimed.files] == [
        ("f0", [(0, 0, 2)]),
        ("f1", [(0, 3, 3)]),
        ("f2", [(1, 0, 0)]),
    ]
    await split_all(plane)
    assert keys(await claim(plane)) == [], "the rest waits for the transaction, also where the search begins"
    time.now = NOW
    await commit(plane, "f4", marker(A, (8, 0)))
    time.now = LATER
    assert await eligible() == 3
    assert keys(await claim(plane)) == ["f2", "f3", "f4"]
