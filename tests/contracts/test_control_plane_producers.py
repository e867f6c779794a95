"""The contract of the control plane: idempotent producers."""

from __future__ import annotations

import pytest

from strandline.controlplane import ProducerBatches, Refusal, SqlControlPlane
from strandline.model import INT32_MAX
from strandline.records import TimestampType
from tests.controlplane.making import MISSING, NOW, A, B, HandSetClock, bases, batch, commit, high_watermark

GAP, FENCED = Refusal.OUT_OF_ORDER_SEQUENCE, Refusal.INVALID_PRODUCER_EPOCH


async def test_a_duplicate_is_answered_with_the_offset_of_the_first_time(plane: SqlControlPlane) -> None:
    await commit(plane, "zero", batch(A, 10))
    await commit(plane, "one", batch(A, 3, producer=(7, 0, 0)), batch(A, 2, producer=(7, 0, 3)))
    again, other = await commit(plane, "two", batch(A, 3, producer=(7, 0, 0)), batch(A, 2, producer=(7, 0, 3)))
    assert (again.refusal, again.base_offset, again.is_duplicate) == (None, 10, True)
    assert (other.base_offset, other.is_duplicate) == (13, True)
    assert await high_watermark(plane, A) == 15


async def test_a_duplicate_is_answered_with_the_time_of_the_first_time_as_by_kafka(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    created = batch(A, timestamp=1_234, producer=(7, 0, 0))
    appended = batch(B, timestamp=1_234, timestamp_type=TimestampType.LOG_APPEND_TIME, producer=(7, 0, 0))
    assert [row.log_append_time_ms for row in await commit(plane, "one", created, appended)] == [-1, NOW]
    time.now += 1
    answers = await commit(plane, "two", created, appended)
    assert [(row.is_duplicate, row.log_append_time_ms) for row in answers] == [(True, 1_234), (True, NOW)]


async def test_a_duplicate_in_the_same_file_is_known(plane: SqlControlPlane) -> None:
    answers = await commit(plane, "one", *[batch(A, 3, producer=(7, 0, 0))] * 2, batch(A, producer=(7, 0, 3)))
    assert bases(answers) == [0, 0, 3]
    assert [answer.is_duplicate for answer in answers] == [False, True, False]


async def test_five_batches_are_remembered(plane: SqlControlPlane) -> None:
    for number in range(7):
        await commit(plane, f"f{number}", batch(A, producer=(7, 0, number)))
    answers = await commit(plane, "again", *(batch(A, producer=(7, 0, number)) for number in range(7)))
    assert [answer.refusal for answer in answers] == [GAP, GAP, None, None, None, None, None]
    assert bases(answers) == [-1, -1, 2, 3, 4, 5, 6]


async def test_a_gap_is_refused_until_what_is_missing_comes(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, 2, producer=(7, 0, 0)))
    late, missing, then = await commit(
        plane,
        "two",
        batch(A, producer=(7, 0, 3)),
        batch(A, producer=(7, 0, 2)),
        batch(A, producer=(7, 0, 3)),
    )
    assert (late.refusal, missing.base_offset, then.base_offset) == (GAP, 2, 3)
    assert "sequence 3" in late.message


async def test_an_unknown_producer_may_begin_anywhere(plane: SqlControlPlane) -> None:
    assert bases(await commit(plane, "one", batch(A, producer=(7, 3, 1_234)), batch(A, producer=(7, 3, 1_235)))) == [
        0,
        1,
    ]


async def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, producer=(7, 1, 0)))
    answers = await commit(
        plane,
        "two",
        batch(A, producer=(7, 0, 1)),
        batch(A, producer=(7, 2, 5)),
        batch(A, producer=(7, 2, 0)),
        batch(A, producer=(7, 1, 1)),
        batch(A, producer=(7, 2, 1)),
    )
    assert [answer.refusal for answer in answers] == [FENCED, GAP, None, FENCED, None]
    assert await plane.producers.producers(A) == [ProducerBatches(7, 2, 1, 1_000)]


async def test_sequences_wrap_around(plane: SqlControlPlane) -> None:
    first = batch(A, 3, producer=(7, 0, INT32_MAX - 1))  # ends with sequence 0
    answers = await commit(plane, "one", first, batch(A, producer=(7, 0, 1)))
    assert bases(answers) == [0, 3]
    await commit(plane, "two", batch(B, 2, producer=(7, 0, INT32_MAX - 1)))
    again, following = await commit(plane, "three", first, batch(B, producer=(7, 0, 0)))
    assert (again.base_offset, again.is_duplicate) == (0, True)
    assert following.base_offset == 2


async def test_partitions_know_their_producers_apart(plane: SqlControlPlane) -> None:
    answers = await commit(
        plane, "one", batch(A, producer=(7, 0, 0)), batch(B, producer=(7, 0, 0)), batch(B, producer=(8, 0, 0))
    )
    assert bases(answers) == [0, 0, 1]
    assert [state.producer_id for state in await plane.producers.producers(B)] == [7, 8]
    for only, found in ((7, [7]), (8, [8]), (9, [])):
        assert [state.producer_id for state in await plane.producers.producers(B, only)] == found
    assert await plane.producers.producers(MISSING) == []


async def test_a_refused_batch_leaves_the_producer_as_it_was(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, 2, producer=(7, 0, 0), timestamp=11))
    await commit(plane, "two", batch(A, 2, producer=(7, 0, 9), timestamp=99))
    assert await plane.producers.producers(A) == [ProducerBatches(7, 0, 1, 11)]


async def test_silent_producers_are_forgotten_a_page_at_a_time(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", *(batch(A, producer=(number, 0, 5)) for number in range(5)))
    time.now += 60
    assert await plane.producers.expire_producers(silent_ms=60, limit=10) == 0
    time.now += 1
    assert await plane.producers.expire_producers(silent_ms=60, limit=3) == 3
    assert await plane.producers.expire_producers(silent_ms=60, limit=3) == 2
    assert await plane.producers.expire_producers(silent_ms=60, limit=3) == 0
    assert await plane.producers.producers(A) == []
    assert bases(await commit(plane, "two", batch(A, producer=(1, 0, 77)))) == [5]


@pytest.mark.parametrize("count", [200])
async def test_many_producers_in_one_file(plane: SqlControlPlane, count: int) -> None:
    batches = [batch(A, 2, producer=(number, 0, 0)) for number in range(count)]
    first = await commit(plane, "one", *batches)
    assert bases(first) == [2 * number for number in range(count)]
    again = await commit(plane, "two", *batches)
    assert bases(again) == bases(first)
    assert all(answer.is_duplicate for answer in again)
