"""Segments that are built from batches are those that a log has written, file by file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import Chance, SystemChance
from strandline.config.topic import TopicConfig
from strandline.errors import CorruptMessage
from strandline.log import AppendOrigin, ClosedSegment, SegmentBuilder
from strandline.log.checkpoints import parse_epochs
from strandline.log.producer_snapshot import parse_snapshot
from strandline.records.batch import iter_headers, renew_crc, stamp
from tests.golden import read_json
from tests.log.harness import NOW, LogHarness, batch, marker
from tests.log.test_golden_tiered import files_of

INTERVAL = 4096


def fed(builder: SegmentBuilder, data: bytes, chance: Chance) -> None:
    """Append bytes in pieces that end anywhere, as they come from a store."""
    rest = b""
    while data:
        piece = 1 + chance.below(2999)
        rest, data = rest + data[:piece], data[piece:]
        rest = rest[builder.append(memoryview(rest)) :]
    assert rest == b""


def rebuilt(
    root: Path, segments: list[ClosedSegment], *, interval: int = INTERVAL, now_ms: int = NOW
) -> list[ClosedSegment]:
    """The same segments once more, from their log files alone; each goes on from the one before."""
    chance = SystemChance(12)
    built: list[ClosedSegment] = []
    for number, segment in enumerate(segments):
        directory = root / f"rebuilt-{number}"
        directory.mkdir()
        builder = SegmentBuilder(
            directory,
            segment.base_offset,
            index_interval_bytes=interval,
            producers=built[-1].producer_snapshot.read_bytes() if built else None,
            epochs=parse_epochs(built[-1].epoch_history, "the segment before") if built else (),
            now_ms=now_ms,
        )
        fed(builder, segment.log.read_bytes(), chance)
        built.append(builder.finish())
    return built


def end_transaction(harness: LogHarness, producer: int, *, commits: bool, epoch: int) -> None:
    harness.append(marker(producer, commits=commits), epoch=epoch, origin=AppendOrigin.COORDINATOR)


def test_a_log_with_transactions_and_epochs_comes_out_the_same(tmp_path: Path) -> None:
    config = TopicConfig(remote_storage_enable=True, index_interval_bytes=INTERVAL)
    harness = LogHarness(tmp_path / "data", config, remote_enabled=True)
    harness.create()
    chance = SystemChance(3)
    sequences = dict.fromkeys(range(5), 0)
    open_ones: set[int] = set()
    for step in range(400):
        producer = chance.below(5)
        count = 1 + chance.below(5)
        harness.append(
            batch(
                count,
                timestamp=NOW + chance.below(2000) - 1000,
                value=bytes(chance.below(900)),
                producer_id=producer,
                sequence=sequences[producer],
                is_transactional=producer > 2,
            ),
            epoch=step // 130,
        )
        sequences[producer] += count
        if producer > 2:
            open_ones.add(producer)
        if open_ones and chance.below(10) < 2:
            end_transaction(harness, open_ones.pop(), commits=chance.below(10) < 5, epoch=step // 130)
        if step % 90 == 89:
            for producer in sorted(open_ones):
                end_transaction(harness, producer, commits=False, epoch=step // 130)
            open_ones.clear()
            harness.log.roll()
    segments = harness.log.remote.segments_to_copy(0)
    assert len(segments) == 4
    assert all(segment.txn_index is not None for segment in segments)
    built = rebuilt(tmp_path, segments)
    assert [files_of(segment) for segment in built] == [files_of(segment) for segment in segments]
    for ours, theirs in zip(built, segments, strict=True):
        assert ours.leader_epochs == theirs.leader_epochs
        assert (ours.size, ours.max_timestamp, ours.end_offset) == (
            theirs.size,
            theirs.max_timestamp,
            theirs.end_offset,
        )


def test_segments_that_kafka_has_copied_come_out_the_same(kafka_tiered: Path, tmp_path: Path) -> None:
    described = read_json(kafka_tiered / "expected/tiered/remote_segments.json")
    topics = read_json(kafka_tiered / "expected/tiered/topics.json")
    chains = _chains(described)
    compared = 0
    for name, chain in chains.items():
        remote = next((kafka_tiered / "tiered/remote/kafka-tiered-storage").glob(f"{name}-*"))
        segments = [_copied(remote, segment) for segment in chain]
        directory = tmp_path / name
        directory.mkdir()
        interval = int(topics[chain[0]["topic"]]["configs"].get("index.interval.bytes", INTERVAL))
        built = rebuilt(directory, segments, interval=interval, now_ms=chain[-1]["max_timestamp"])
        for ours, theirs in zip(built, segments, strict=True):
            if len(ours.leader_epochs) > 1:
                break  # Kafka was restarted: it has let producers expire, and counts bytes without an index entry anew
            assert files_of(ours) == files_of(theirs), (name, theirs.base_offset)
            compared += 1
    assert compared > 20


def _chains(described: list[Any]) -> dict[str, list[Any]]:
    """Segments by partition; of each the first ones that follow each other from offset 0 on."""
    chains: dict[str, list[Any]] = {}
    for segment in sorted(described, key=lambda one: (one["topic"], one["partition"], one["base_offset"])):
        chain = chains.setdefault(f"{segment['topic']}-{segment['partition']}", [])
        if segment["base_offset"] == (chain[-1]["end_offset"] + 1 if chain else 0):
            chain.append(segment)
    return {name: chain for name, chain in chains.items() if chain}


def _copied(remote: Path, segment: Any) -> ClosedSegment:
    name = f"{segment['base_offset']:020d}-{segment['segment_id']}"
    txn_index = remote / f"{name}.txnindex"
    return ClosedSegment(
        base_offset=segment["base_offset"],
        next_base_offset=segment["end_offset"] + 1,
        size=segment["files"]["log"],
        max_timestamp=segment["max_timestamp"],
        log=remote / f"{name}.log",
        offset_index=remote / f"{name}.index",
        time_index=remote / f"{name}.timeindex",
        txn_index=txn_index if txn_index.exists() else None,
        producer_snapshot=remote / f"{name}.snapshot",
        leader_epochs={},
        epoch_history=(remote / f"{name}.leader_epoch_checkpoint").read_bytes(),
    )


class TestState:
    def test_producers_that_had_expired_before_are_left_out(self, tmp_path: Path) -> None:
        first = _built(
            tmp_path / "1", batch(producer_id=1, sequence=0), batch(base_offset=1, producer_id=2, sequence=0)
        )
        later = _built(
            tmp_path / "2",
            batch(base_offset=2, producer_id=2, sequence=1, timestamp=NOW - 10**9),
            base_offset=2,
            producers=first.producer_snapshot.read_bytes(),
            now_ms=NOW + 1000,
            producer_expiration_ms=1000,
        )
        found = {entry.producer_id: entry for entry in parse_snapshot(later.producer_snapshot.read_bytes())}
        assert found.keys() == {2}
        assert (found[2].last_offset, found[2].last_timestamp) == (2, NOW - 10**9)

    def test_epochs_go_on_from_those_before(self, tmp_path: Path) -> None:
        built = _built(
            tmp_path / "1",
            batch(2, base_offset=10, leader_epoch=4),
            batch(base_offset=12, leader_epoch=7),
            base_offset=10,
            epochs=((1, 0), (4, 6)),
        )
        assert built.leader_epochs == {4: 10, 7: 12}
        assert built.epoch_history == b"0\n3\n1 0\n4 6\n7 12\n"


def _built(
    directory: Path, *batches: memoryview, base_offset: int = 0, now_ms: int = NOW, **state: Any
) -> ClosedSegment:
    directory.mkdir()
    builder = SegmentBuilder(directory, base_offset, index_interval_bytes=INTERVAL, now_ms=now_ms, **state)
    for one in batches:
        data = bytearray(one)
        ((_, header),) = iter_headers(data)
        stamp(data, 0, header.base_offset, max(header.leader_epoch, 0))
        assert builder.append(memoryview(data)) == len(data)
    return builder.finish()


class TestWhatIsRefused:
    """The bytes come from a store, and their plan from a database: both may be wrong."""

    def builder(self, directory: Path) -> SegmentBuilder:
        builder = SegmentBuilder(directory, 5, index_interval_bytes=INTERVAL, epochs=((3, 0),), now_ms=NOW)
        builder.append(batch(2, base_offset=5, leader_epoch=3))
        return builder

    @pytest.mark.parametrize(
        ("base_offset", "leader_epoch", "sentence"),
        [
            (8, 3, "A batch of the offsets 8 to 8 is where offset 7 should be."),
            (6, 3, "A batch of the offsets 6 to 6 is where offset 7 should be."),
            (7, 2, "The batch of offset 7 has leader epoch 2, but 3 has been before."),
        ],
    )
    def test_offsets_and_epochs_that_do_not_follow(
        self, tmp_path: Path, base_offset: int, leader_epoch: int, sentence: str
    ) -> None:
        with pytest.raises(CorruptMessage) as refused:
            self.builder(tmp_path).append(batch(base_offset=base_offset, leader_epoch=leader_epoch))
        assert str(refused.value) == sentence

    @pytest.mark.parametrize("position", [*range(8), *range(12, 24), 60, -1])
    def test_every_byte_counts(self, tmp_path: Path, position: int) -> None:
        """A wrong length (bytes 8 to 11) is a batch that is cut, or one with a wrong checksum."""
        data = bytearray(batch(base_offset=7, leader_epoch=3))
        data[position] ^= 0x80
        builder = self.builder(tmp_path)
        if position in range(12, 16):  # an epoch that is too high is found by whoever knows the plan
            data[12] &= 0x7F
            data[position] ^= 0x40 if position == 12 else 0
            builder.append(memoryview(data))
            assert builder.epochs_in(5, 8) != ((3, 5),)
            return
        with pytest.raises(CorruptMessage):
            builder.append(memoryview(data))

    def test_offsets_that_an_index_cannot_hold(self, tmp_path: Path) -> None:
        builder = SegmentBuilder(tmp_path, 0, index_interval_bytes=INTERVAL, now_ms=NOW)
        builder.append(batch(leader_epoch=0))
        far = bytearray(batch(base_offset=1, leader_epoch=0))
        far[23:27] = (2**31 - 1).to_bytes(4)
        renew_crc(far, 0)
        with pytest.raises(CorruptMessage, match="too far"):
            builder.append(memoryview(far))

    def test_a_segment_without_batches(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="at least one batch"):
            SegmentBuilder(tmp_path, 0, index_interval_bytes=INTERVAL, now_ms=NOW).finish()


def test_an_index_entry_comes_for_each_batch_after_the_interval_however_batches_arrive(tmp_path: Path) -> None:
    batches = []
    offset = 0
    for step in range(200):
        batches.append(bytes(batch(2, base_offset=offset, leader_epoch=0, value=bytes(step * 7))))
        offset += 2
    for number, sizes in enumerate(([1] * 200, [200])):
        directory = tmp_path / str(number)
        directory.mkdir()
        builder = SegmentBuilder(directory, 0, index_interval_bytes=1000, now_ms=NOW)
        left = list(batches)
        for count in sizes:
            builder.append(memoryview(b"".join(left[:count])))
            left = left[count:]
        builder.finish()
    for one, other in pairwise(sorted(tmp_path.iterdir())):
        assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in other.iterdir()}
