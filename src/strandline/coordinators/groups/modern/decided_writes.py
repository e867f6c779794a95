"""Writing what was decided about groups whose members are told at once.

A decision changes the group at once, so that the next one sees it, and is answered when its records are in the log. If
the log refuses them, the client gets an error and the group stays as decided: the records may be in the log
nevertheless, so it is not known whether taking the change back would be right. Instead the records are written again,
with the values that the group has then, by the next decision or after a while. Until the log has them, clients get an
error for later decisions about the group. A client that missed an answer asks again, as after any lost answer.

A decision may be too large for one batch (`batches`). Then it is in the log when the last of its batches is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

from strandline.coordinators.groups.modern.batches import BatchCutter
from strandline.coordinators.groups.modern.group import discount
from strandline.coordinators.runtime import BoundedSink, KeyValue, Timer, Timers, WriteResult, write_size
from strandline.errors import CoordinatorNotAvailable, StrandlineError

CurrentRecord: TypeAlias = Callable[[str, bytes], KeyValue | None]
"""The record that a group has to have for a key now; None if other code writes it."""

_RETRY_AFTER_MS: Final = 1000


class DecidedWrites:
    """The writes of the groups of one kind in one shard."""

    def __init__(self, sink: BoundedSink, timers: Timers, current: CurrentRecord, cutter: BatchCutter) -> None:
        self._sink, self._timers, self._current, self._cutter = sink, timers, current, cutter
        self._under_way: Counter[str] = Counter()
        self._unsure: dict[str, set[bytes]] = {}
        """Keys whose value in the log is not known, by group."""
        self._repairs: Counter[str] = Counter()
        """How many writes are under way that began with such keys, by group."""
        self._retry: Timer | None = None
        self._stopped: StrandlineError | None = None
        """Why nothing is written any more."""

    @property
    def is_stopped(self) -> bool:
        """Whether the shard is unloaded: what is decided from now on is refused."""
        return self._stopped is not None

    def is_settled(self, group_id: str) -> bool:
        """Whether everything that was decided about the group is in the log."""
        return group_id not in self._under_way and group_id not in self._unsure

    def check(self, group_id: str, records: Sequence[KeyValue]) -> None:
        """Raises StrandlineError if the log cannot take this decision, whatever it takes otherwise."""
        if records:
            self._cutter.check(group_id, records, self._sink.max_write_bytes())

    def write(self, group_id: str, records: Sequence[KeyValue], done: Callable[[StrandlineError | None], None]) -> None:
        """Call back when everything that was decided about the group so far is in the log, or with the refusal."""
        if self._stopped is not None:
            done(self._stopped)
            return
        is_repair = group_id in self._unsure
        unsure = self._unsure.pop(group_id, set()) - {key for key, _ in records}
        again = [record for key in sorted(unsure) if (record := self._current(group_id, key)) is not None]
        if not again and not records and not self._under_way[group_id]:
            done(None)
            return
        *first, last = self._batches(again, records)
        for batch in first:
            self._write_batch(group_id, batch, is_repair, lambda _: None)
        self._write_batch(group_id, last, is_repair, done)

    def _batches(self, again: Sequence[KeyValue], records: Sequence[KeyValue]) -> list[Sequence[KeyValue]]:
        """One if possible; what is written again never keeps a decision from fitting."""
        limit = self._sink.max_write_bytes()
        if write_size(again) + write_size(records) <= limit:
            return [[*again, *records]]
        return [*self._cutter.cut(again, limit), *self._cutter.cut(records, limit)]

    def _write_batch(
        self,
        group_id: str,
        written: Sequence[KeyValue],
        is_repair: bool,
        done: Callable[[StrandlineError | None], None],
    ) -> None:
        counts = (self._under_way, self._repairs) if is_repair else (self._under_way,)
        for count in counts:
            count[group_id] += 1

        def finished(outcome: WriteResult) -> None:
            for count in counts:
                discount(count, [group_id])
            error = outcome.error
            if error is not None and written:
                self.doubt(group_id, [key for key, _ in written])
            elif error is None and (group_id in self._unsure or group_id in self._repairs):
                # What it was decided on may not be in the log: a successor could decide otherwise. Writes end in their
                # order, so a repair that is still under way is behind this one.
                error = CoordinatorNotAvailable(f"An earlier decision about group {group_id} is being written again.")
            done(error)

        self._sink.write(written, finished)

    def doubt(self, group_id: str, keys: Collection[bytes]) -> None:
        """It is not known whether the log has these records: write them again."""
        if self._stopped is not None:
            return
        self._unsure.setdefault(group_id, set()).update(keys)
        if self._retry is None:
            self._retry = self._timers.after(_RETRY_AFTER_MS, self._write_unsure)
        elif not self._retry.is_pending:
            self._retry.restart(_RETRY_AFTER_MS)

    def forget(self, group_id: str) -> None:
        """The group is deleted with all its records."""
        self._unsure.pop(group_id, None)

    def stop(self, error: StrandlineError) -> None:
        """Another broker coordinates these groups now, and decides by what is in the log. Decisions that are made here
        later, because an answer from elsewhere comes late, fail with `error`."""
        self._stopped = error
        self._unsure.clear()
        if self._retry is not None:
            self._retry.cancel()

    def _write_unsure(self) -> None:
        for group_id in list(self._unsure):
            self.write(group_id, (), lambda _: None)  # a refusal puts the keys back and sets the timer
