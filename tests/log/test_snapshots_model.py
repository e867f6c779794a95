"""Whatever a log rolls, writes, deletes and loses in a crash: it knows each producer as its whole history says.

Every snapshot is one of "very many producers" here, so it is pending until a rule writes it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.config.topic import TopicConfig
from strandline.log import UnifiedLog, producer_state
from strandline.log.producer_snapshot import parse_snapshot
from tests.log.harness import LogHarness, batch

SIZE = len(batch())
PRODUCERS = 5


class ProducersAgainstHistory(RuleBasedStateMachine):
    """The model: who wrote each offset, from 0 on, also where the records are deleted."""

    IS_TIERED = False

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        config = TopicConfig(
            internal_segment_bytes=4 * SIZE,
            retention_bytes=8 * SIZE,
            local_retention_bytes=8 * SIZE,
            remote_storage_enable=self.IS_TIERED,
        )
        self.harness = LogHarness(self.root, config, remote_enabled=self.IS_TIERED)
        self.harness.create()
        self.writers: list[int] = []
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(producer_state, "_ENCODED_AT_ONCE", -1)

    def teardown(self) -> None:
        self.patch.undo()
        self.harness.log.abandon()
        shutil.rmtree(self.root)

    @property
    def log(self) -> UnifiedLog:
        return self.harness.log

    def known_at(self, end: int) -> dict[int, tuple[int, int]]:
        """The last sequence and offset of each producer."""
        known: dict[int, tuple[int, int]] = {}
        for offset, producer_id in enumerate(self.writers[:end]):
            known[producer_id] = (self.writers[:offset].count(producer_id), offset)
        return known

    @initialize()
    def everybody_writes(self) -> None:
        for producer_id in range(PRODUCERS):
            self.append(producer_id)

    @rule(producer_id=st.integers(0, PRODUCERS - 2))  # the last one is silent
    def append(self, producer_id: int) -> None:
        self.harness.append(batch(producer_id=producer_id, sequence=self.writers.count(producer_id)))
        self.writers.append(producer_id)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(rolls=st.integers(2, 5))
    def roll_often(self, rolls: int) -> None:
        for _ in range(rolls):
            self.append(0)
            self.log.roll()

    @rule()
    def write_a_snapshot(self) -> None:
        pending = self.log.producers.pending_snapshot
        if pending is not None:
            pending.encoding.encode_all()
            temporary = self.log.directory / "x.tmp"
            temporary.write_bytes(b"".join(pending.encoding.content()))
            self.log.producers.put_in_place(pending, str(temporary))

    @rule()
    def flush_closed(self) -> None:
        self.log.flusher.flush(self.log.segments.closed_end)

    @rule()
    def flush(self) -> None:
        self.log.flusher.flush()

    @rule()
    def copy(self) -> None:
        if self.IS_TIERED:
            for segment in self.log.remote.segments_to_copy(self.log.remote.highest_offset + 1):
                self.agrees(segment.producer_snapshot, segment.next_base_offset)
                self.log.remote.update_highest_offset(segment.end_offset)

    @rule(limit=st.integers(1, 3))
    def retention(self, limit: int) -> None:
        self.log.retention.delete_old_segments(self.harness.clock.now_ms(), limit=limit)
        self.harness.delete_due()

    @rule(back=st.integers(0, 6))
    def truncate(self, back: int) -> None:
        end = max(self.log.log_end_offset - back, self.log.local_log_start_offset, PRODUCERS)
        self.log.truncate_to(end)
        del self.writers[end:]

    @rule()
    def stop_and_start(self) -> None:
        self.harness.reopen()

    @rule(is_twice=st.booleans())
    def crash(self, is_twice: bool) -> None:
        self.harness.crash()
        if is_twice:
            self.retention(3)
            self.harness.crash()

    @invariant()
    def producers_agree(self) -> None:
        found = {
            e.producer_id: (e.last_sequence, e.batches[-1].last_offset) for e in self.log.producers.entries.values()
        }
        assert found == self.known_at(len(self.writers))
        assert self.log.log_end_offset == len(self.writers)

    @invariant()
    def few_are_pending(self) -> None:
        assert sum(map(self.log.producers.is_pending, self.log.segments.bases)) <= 2

    @invariant()
    def snapshots_agree(self) -> None:
        for offset in self.log.producers.snapshots:
            self.agrees(Path(self.log.producers.snapshot_path(offset)), offset)

    def agrees(self, path: Path, offset: int) -> None:
        entries = parse_snapshot(path.read_bytes())
        assert {e.producer_id: (e.last_sequence, e.batches[-1].last_offset) for e in entries} == self.known_at(offset)


class TieredAgainstHistory(ProducersAgainstHistory):
    IS_TIERED = True


ProducersAgainstHistory.TestCase.settings = settings(stateful_step_count=40)
TieredAgainstHistory.TestCase.settings = settings(stateful_step_count=40)
TestProducersAgainstHistory = ProducersAgainstHistory.TestCase
TestTieredAgainstHistory = TieredAgainstHistory.TestCase
