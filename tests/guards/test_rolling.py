"""A roll of a log with very many producers, and the snapshot that follows it: short turns, by count."""

from __future__ import annotations

from pathlib import Path

from strandline.log.producer_snapshot import SnapshotEncoding, format_snapshot
from strandline.records.producer_entry import BatchSpan, ProducerEntry
from tests.guards.counting import CountedInstructions, exponent
from tests.log.harness import NOW, LogHarness, batch

FEW, MANY = 6_000, 24_000
PER_STEP = 500
INSTRUCTIONS_EACH, INSTRUCTIONS_PER_STEP = 80, 2_000


def producers(count: int) -> list[ProducerEntry]:
    return [ProducerEntry(number, 0, [BatchSpan(0, 0, 0, NOW)], NOW) for number in range(count)]


def test_a_roll_does_not_encode_the_producers(tmp_path: Path) -> None:
    def roll(size: int) -> int:
        harness = LogHarness(tmp_path / str(size))
        log = harness.create()
        log.producers.restore(format_snapshot(producers(size)), NOW)
        harness.append(batch())
        with CountedInstructions() as counted:
            log.roll()
        assert log.segments.bases == [0, 1]
        return counted.total

    roll(FEW)
    assert roll(MANY) <= FEW


def test_a_snapshot_is_encoded_in_proportion_and_in_short_steps() -> None:
    def encode(size: int) -> int:
        encoding = SnapshotEncoding(producers(size))
        with CountedInstructions() as counted:
            while not encoding.is_complete:
                encoding.encode(PER_STEP)
                counted.end_turn()
        assert counted.longest_turn <= 2 * PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP
        return counted.total

    few, many = encode(FEW // 10), encode(MANY // 10)
    assert exponent((FEW, few), (MANY, many)) <= 1.05
