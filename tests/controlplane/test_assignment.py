"""The arithmetic of commits, without a database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane import BatchToCommit, CommittedBatch, Refusal
from strandline.controlplane.assignment import LogTail, OffsetAssignment
from strandline.controlplane.commit_rows import decode_answers, encode_answers
from strandline.records import TimestampType
from tests.controlplane.making import A, B, batch, wal

batches = st.builds(
    batch,
    st.sampled_from([A, B]),
    st.integers(1, 5),
    size=st.integers(61, 500),
    timestamp=st.integers(-1, 50),
    timestamp_type=st.sampled_from(TimestampType),
    leader_epoch=st.integers(0, 2),
)


@given(st.lists(st.lists(batches, max_size=8), max_size=4))
def test_rows_hold_every_batch_once_and_in_order(files: list[list[BatchToCommit]]) -> None:
    logs = {A: LogTail(1, 0, 0, -1, -1), B: LogTail(2, 5, 10, 20, 1)}
    order = OffsetAssignment(logs, {}, now_ms=40)
    answers = [
        (item, answer)
        for number, items in enumerate(files)
        for item, answer in zip(items, order.add(wal(str(number), *items)), strict=True)
    ]
    for partition, start in ((A, 0), (B, 10)):
        expected = start
        for item, answer in answers:
            if item.partition == partition:
                assert answer.base_offset == expected
                expected += item.record_count
        rows = [row for row in order.rows if row.log is logs[partition]]
        assert logs[partition].high_watermark == expected
        assert [row.base_offset for row in rows] == [start, *(row.last_offset + 1 for row in rows)][: len(rows)]
        assert sum(row.byte_size for row in rows) == logs[partition].added_bytes
        running = [row.running_max_timestamp for row in rows]
        assert running == sorted(running)
        assert all(row.max_timestamp <= row.running_max_timestamp for row in rows)


answers = st.builds(
    CommittedBatch,
    st.none() | st.sampled_from(Refusal),
    st.integers(-1, 1 << 62),
    st.integers(-1, 1 << 62),
    st.integers(-1, 1 << 62),
    st.booleans(),
    st.text(max_size=20),
    st.integers(-1, 1 << 31),
)


@given(st.lists(answers))
def test_answers_come_back_as_they_were(given_answers: list[CommittedBatch]) -> None:
    assert list(decode_answers(encode_answers(given_answers))) == given_answers


def test_answers_of_a_full_file_take_little_room() -> None:
    given_answers = [CommittedBatch(None, 1_000_000 + 16 * number, -1, 77, leader_epoch=5) for number in range(512)]
    assert len(encode_answers(given_answers)) < 4_000
