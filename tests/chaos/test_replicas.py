"""The judge of replicas: below the high watermark all of them hold the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.history import Event, Replica, Run, StoredBatch, from_line, to_line
from chaos.replicas import check_replicas
from chaos.stored import read_replica
from chaos.verify import verify
from chaos.violations import Kind

from strandline.log.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, write_offsets
from strandline.model import TopicPartition
from tests.wirelevel.raw import batch

PLACE = ("list-replicated", 0)
BATCHES = [
    StoredBatch(offset=0, next_offset=2, digest="a"),
    StoredBatch(offset=2, next_offset=3, digest="b"),
    StoredBatch(offset=3, next_offset=7, digest="c"),
]


def replica(broker: int, batches: Sequence[StoredBatch] = BATCHES, high_watermark: int = 7) -> Replica:
    return Replica(
        broker=broker,
        topic=PLACE[0],
        partition=PLACE[1],
        assigned=[1, 2, 3],
        start=0,
        high_watermark=high_watermark,
        batches=list(batches),
    )


def kinds(*replicas: Replica) -> list[Kind]:
    return [one.kind for one in check_replicas(replicas)]


def test_replicas_that_are_the_same() -> None:
    assert kinds(replica(1), replica(2), replica(3)) == []


def test_what_is_above_the_high_watermark_of_all_may_differ() -> None:
    other = [*BATCHES[:2], replace(BATCHES[2], digest="x")]
    assert kinds(replica(1, high_watermark=3), replica(2, other, 3), replica(3, BATCHES[:2], 2)) == []


@pytest.mark.parametrize(
    "batches",
    [
        BATCHES[:2],  # an acknowledged batch is missing at the end
        BATCHES[1:],  # or at the beginning
        [BATCHES[0], BATCHES[2]],  # or between others
        [BATCHES[0], replace(BATCHES[1], digest="x"), BATCHES[2]],
        [BATCHES[0], replace(BATCHES[1], next_offset=4), BATCHES[2]],
        [],
    ],
)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_that_differs_is_named_once(batches: list[StoredBatch], position: int) -> None:
    found = [replica(1), replica(2), replica(3)]
    found[position] = replica(position + 1, batches)
    violations = list(check_replicas(found))
    assert {one.kind for one in violations} == {Kind.DIVERGED}
    assert len(violations) <= 2
    assert f"broker {position + 1} has" in " ".join(one.text for one in violations)


def test_the_highest_watermark_counts_whichever_replica_has_it() -> None:
    assert kinds(replica(1), replica(2, BATCHES[:2], high_watermark=3), replica(3)) == [Kind.DIVERGED]


def test_a_replica_that_is_not_there_begins_later_or_is_torn() -> None:
    assert kinds(replica(1), replica(3)) == [Kind.DIVERGED]
    assert kinds(replica(1), replica(2), replace(replica(3), start=2)) == [Kind.GAP]
    torn = [*BATCHES[:2], replace(BATCHES[2], is_whole=False)]
    assert Kind.TORN in kinds(replica(1), replica(2), replica(3, torn))


def test_each_partition_is_judged_for_itself_and_in_the_verdict() -> None:
    other = replace(replica(2, BATCHES[:2], high_watermark=3), partition=1, assigned=[2])
    assert kinds(replica(1), replica(2), replica(3), other) == []
    history: list[Event] = [Run(seed=1, seconds=1.0, tiers=["replicated"]), replica(1), replica(3)]
    assert Kind.DIVERGED in {one.kind for one in verify(history)}
    assert [from_line(to_line(event)) for event in history] == history


def test_a_replica_is_read_from_its_files(tmp_path: Path) -> None:
    directory = tmp_path / "list-replicated-0"
    directory.mkdir()
    first, second = bytearray(batch(b"one", b"two")), bytearray(batch(b"three"))
    second[7] = 2  # its base offset
    (directory / f"{0:020}.log").write_bytes(first)
    (directory / f"{2:020}.log").write_bytes(second)
    (directory / f"{2:020}.index").write_bytes(b"not read")
    write_offsets(str(tmp_path / HIGH_WATERMARKS), {TopicPartition(*PLACE): 3})
    write_offsets(str(tmp_path / LOG_START_OFFSETS), {TopicPartition(*PLACE): 1})
    found = read_replica(tmp_path, 2, PLACE, [1, 2])
    assert found is not None
    assert (found.broker, found.assigned, found.start, found.high_watermark) == (2, [1, 2], 1, 3)
    assert [(one.offset, one.next_offset, one.is_whole) for one in found.batches] == [(0, 2, True), (2, 3, True)]
    second[-1] ^= 1
    (directory / f"{2:020}.log").write_bytes(second)
    torn = read_replica(tmp_path, 2, PLACE, [1, 2])
    assert torn is not None
    assert [one.is_whole for one in torn.batches] == [True, False]
    assert torn.batches[1].digest != found.batches[1].digest
    assert read_replica(tmp_path, 2, ("list-replicated", 1), [2]) is None
