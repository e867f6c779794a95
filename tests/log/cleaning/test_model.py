"""Any order of writing, deleting, cleaning and crashing agrees with a dictionary."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.records import Codec, Record
from tests.log.cleaning.support import CompactedLog

keys = st.sampled_from([b"a", b"b", b"c", b"d", b"long-" * 10])
values = st.one_of(st.none(), st.binary(min_size=1, max_size=20))
entries = st.lists(st.tuples(keys, values), min_size=1, max_size=6)
PRODUCERS = (11, 12)


class CompactionAgainstModel(RuleBasedStateMachine):
    """`written` is every record by its offset, `newest` what a reader that knows only the newest record sees."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.log = CompactedLog(Path(self.directory.name) / "data", internal_segment_bytes=400)
        self.written: dict[int, Record] = {}
        self.newest: dict[bytes, int] = {}
        self.aborted: set[int] = set()
        self.sequences = dict.fromkeys(PRODUCERS, 0)

    def teardown(self) -> None:
        self.loop.close()
        self.directory.cleanup()

    def note(self, base: int, records: list[tuple[bytes, bytes | None]], *, is_committed: bool) -> None:
        now = self.log.clock.now_ms()
        for i, (key, value) in enumerate(records):
            self.written[base + i] = Record(base + i, now + i, key, value)
            if is_committed:
                self.newest[key] = base + i
            else:
                self.aborted.add(base + i)

    @rule(records=entries, codec=st.sampled_from(list(Codec)))
    def produce(self, records: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        self.note(self.log.produce(*records, codec=codec), records, is_committed=True)

    @rule(records=entries, producer=st.sampled_from(PRODUCERS))
    def produce_idempotently(self, records: list[tuple[bytes, bytes | None]], producer: int) -> None:
        """After a cleaning, and after a restart, the broker still knows the producer's last sequence."""
        base = self.log.produce(
            *records, producer_id=producer, producer_epoch=0, base_sequence=self.sequences[producer]
        )
        self.sequences[producer] += len(records)
        self.note(base, records, is_committed=True)

    @rule(records=st.lists(entries, min_size=1, max_size=3), producer=st.sampled_from(PRODUCERS), commit=st.booleans())
    def transaction(self, records: list[list[tuple[bytes, bytes | None]]], producer: int, commit: bool) -> None:
        for batch in records:
            base = self.log.produce(
                *batch,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=self.sequences[producer],
                is_transactional=True,
            )
            self.sequences[producer] += len(batch)
            self.note(base, batch, is_committed=commit)
        self.log.end_transaction(producer, commit=commit)

    @rule(seconds=st.sampled_from([1, 3600, 90_000]))
    def wait(self, seconds: int) -> None:
        self.log.clock.move(seconds)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(budget=st.sampled_from([400, 128 << 20]))
    def clean(self, budget: int) -> None:
        self.loop.run(self.log.clean(log_cleaner_dedupe_buffer_size=budget))

    @precondition(lambda self: self.written)
    @rule()
    def clean_everything(self) -> None:
        """A log without an undecided tail is clean up to its active segment: each key once, nothing aborted."""
        self.log.roll()
        self.loop.run(self.log.clean())
        keys = [record.key for record in self.log.records()]
        assert len(keys) == len(set(keys))
        assert all(record.offset == self.newest[record.key or b""] for record in self.log.records())

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        end = self.log.log.log_end_offset
        self.log.reload(is_clean=is_clean)
        assert self.log.log.log_end_offset == end

    @invariant()
    def what_is_left_was_written(self) -> None:
        offsets = self.log.offsets()
        assert offsets == sorted(set(offsets))
        assert all(record == self.written[record.offset] for record in self.log.records())

    @invariant()
    def no_newest_value_is_lost(self) -> None:
        left = set(self.log.offsets())
        for key, offset in self.newest.items():
            if self.written[offset].value is not None:
                assert offset in left, f"the newest value of {key!r} is gone"

    @invariant()
    def what_a_consumer_sees_is_right(self) -> None:
        seen: dict[bytes | None, bytes | None] = {}
        for record in self.log.records():
            if record.offset not in self.aborted:
                seen[record.key] = record.value
        expected = {key: self.written[offset].value for key, offset in self.newest.items()}
        assert {key: value for key, value in seen.items() if value is not None} == {
            key: value for key, value in expected.items() if value is not None
        }


TestCompactionAgainstModel = CompactionAgainstModel.TestCase
TestCompactionAgainstModel.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
