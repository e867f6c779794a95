"""The groups of one kind in the table of a shard, which has groups of all kinds: found, loaded, written and timed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.modern.batches import BatchCutter
from strandline.coordinators.groups.modern.changes import GroupChanges
from strandline.coordinators.groups.modern.decided_writes import DecidedWrites
from strandline.coordinators.groups.modern.group import ModernGroup
from strandline.coordinators.groups.modern.member_timers import MemberTimers
from strandline.coordinators.groups.modern.records import ModernRecordKey
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.runtime import BoundedSink, KeyValue, Timers
from strandline.errors import GroupIdNotFound, StrandlineError

logger = logging.getLogger(__name__)

G = TypeVar("G", bound=ModernGroup[Any])


class GroupTable(Generic[G]):
    """`groups` belongs to the shard. `kind` is the class of the groups that count here."""

    def __init__(self, groups: dict[str, Group], kind: type[G], sink: BoundedSink, timers: Timers) -> None:
        self._groups, self._kind = groups, kind
        self.timers = MemberTimers(timers)
        cutter = BatchCutter([kind.types.target, *kind.independent], kind.types.target_epoch)
        self.writer = DecidedWrites(sink, timers, self._current, cutter)

    def get(self, group_id: str) -> G | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, self._kind) else None

    def existing(self, group_id: str) -> G:
        """Raises GroupIdNotFound."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, self._kind):
            raise GroupIdNotFound(f"Group {group_id} is not a {self._kind.group_type.value} group.")
        return group

    def existing_or_new(self, group_id: str) -> G:
        """A new group is not in the table yet. Raises GroupIdNotFound if a group of another kind has the name."""
        return self.existing(group_id) if group_id in self._groups else self._kind(group_id)

    def all(self) -> list[G]:
        return [group for group in self._groups.values() if isinstance(group, self._kind)]

    def install(self, group: G) -> None:
        self._groups[group.group_id] = group

    def replay(self, key: ModernRecordKey, raw_value: bytes | None) -> None:
        """Apply a record that was read from the log. Raises CorruptMessage."""
        group = self.get(key.group_id)
        if group is None:
            if raw_value is None:
                return
            self._groups[key.group_id] = group = self._kind(key.group_id)
        if raw_value is None and key.kind is group.types.group_epoch:
            del self._groups[key.group_id]
        else:
            group.apply(key, None if raw_value is None else group.read_value(key.kind, raw_value))

    def takes(self, changes: GroupChanges[G]) -> bool:
        """Whether the decision is not too large for the log."""
        try:
            self.writer.check(changes.group.group_id, changes.records)
        except StrandlineError:
            return False
        return True

    def write(self, changes: GroupChanges[G], done: Callable[[StrandlineError | None], None]) -> None:
        """Call back when everything that was decided about the group so far is in the log, or with the refusal.

        A decision that is too large for the log is taken back.
        """
        group_id, records = changes.group.group_id, changes.records
        try:
            self.writer.check(group_id, records)
        except StrandlineError as error:
            logger.warning("%s", error)
            changes.take_back()
            done(error)
        else:
            self.writer.write(group_id, records, done)

    def write_unasked(self, changes: GroupChanges[G]) -> None:
        """Write changes that no request waits for. What the log refuses is written again later."""
        if changes.is_any:
            self.write(changes, lambda _: None)

    def restore(self, group: Group) -> None:
        """The log refused to delete this group, or did not: what it has to hold is written again."""
        if isinstance(group, self._kind):
            self.writer.doubt(group.group_id, [key for key, _ in group.tombstones()])

    def forget(self, group_id: str) -> None:
        """The group is deleted."""
        self.timers.cancel_group(group_id)
        self.writer.forget(group_id)

    def stop(self, error: StrandlineError) -> None:
        """Another broker coordinates the groups of this shard now: what is decided here later gets `error`."""
        self.timers.cancel_all()
        self.writer.stop(error)

    def _current(self, group_id: str, raw_key: bytes) -> KeyValue | None:
        """What the log has to have for a key; None for the record of a classic group, which writes its own."""
        key, group = read_key(raw_key), self.get(group_id)
        if group is not None and isinstance(key, self._kind.key_type):
            return group.record(key, group.value_of(key))
        if not isinstance(key, self._kind.key_type) and isinstance(self._groups.get(group_id), ClassicGroup):
            return None
        return raw_key, None
