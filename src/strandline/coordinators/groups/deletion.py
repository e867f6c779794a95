"""The deletion of a group with all its offsets, which may be many: those that one step does not delete go after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from strandline.coordinators.groups.classic import ClassicProtocol
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.service import ConsumerGroupService
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.modern.group import discount
from strandline.coordinators.groups.offsets import OffsetStore
from strandline.coordinators.groups.share.service import ShareGroupService
from strandline.coordinators.groups.upkeep import OFFSETS_PER_STEP, Deleted, OffsetUpkeep, ignore
from strandline.coordinators.runtime import RecordSink, WriteResult
from strandline.errors import GroupIdNotFound, StrandlineError


class OngoingDeletions:
    """Those of one shard, with which it shares the table of groups. `ensure_group` makes a group for offsets that have
    none."""

    def __init__(
        self,
        groups: dict[str, Group],
        offsets: OffsetStore,
        upkeep: OffsetUpkeep,
        sink: RecordSink,
        classic: ClassicProtocol,
        consumer: ConsumerGroupService,
        share: ShareGroupService,
        ensure_group: Callable[[str], None],
    ) -> None:
        self._groups, self._offsets, self._upkeep, self._sink = groups, offsets, upkeep, sink
        self._classic, self._tables, self._ensure_group = classic, (consumer.table, share.table), ensure_group
        self._unwritten: Counter[str] = Counter()
        """How many deletions of a group are not in the log yet."""
        self._in_steps: Counter[str] = Counter()
        """How many of those that are in the log have offsets that are still going."""

    def is_unwritten(self, group_id: str) -> bool:
        """Whether the deletion of a group of this name is not in the log yet. Offsets that are committed now were
        written before it and go with the group; those that are committed later make a new one."""
        return group_id in self._unwritten

    def delete(self, group: Group, done: Deleted) -> None:
        """See `GroupShard.delete_group`."""
        group_id = group.group_id
        group.check_delete()
        del self._groups[group_id]
        if isinstance(group, ClassicGroup):
            self._classic.forget_pending(group)
        for table in self._tables:
            table.forget(group_id)
        self._unwritten[group_id] += 1
        keys = self._offsets.all_keys_of(group_id, at_most=OFFSETS_PER_STEP)
        if keys:
            self._upkeep.delete_keys(keys, ignore)

        def written(outcome: WriteResult) -> None:
            discount(self._unwritten, [group_id])
            if outcome.error is not None:
                self._take_back(group)
                done(outcome.error)
                return
            if isinstance(group, ClassicGroup):
                self._classic.stop(group, GroupIdNotFound(f"Group {group_id} not found."))
            if keys is None:
                self._delete_in_steps(group_id, outcome.base_offset, done)
            else:
                self._ensure_group_of_rest(group_id)
                done(None)

        # At once: a group of this name that begins meanwhile writes its records behind these.
        self._sink.write(group.tombstones(), written)

    def _take_back(self, group: Group) -> None:
        self._groups.setdefault(group.group_id, group)
        for table in self._tables:
            table.restore(group)

    def _delete_in_steps(self, group_id: str, record_offset: int, done: Deleted) -> None:
        """The offsets that the group had before this record of the log."""

        def ended(error: StrandlineError | None) -> None:
            discount(self._in_steps, [group_id])
            self._ensure_group_of_rest(group_id)
            done(error)

        self._in_steps[group_id] += 1
        self._upkeep.delete_before(group_id, record_offset, ended)

    def _ensure_group_of_rest(self, group_id: str) -> None:
        """A deletion has ended: offsets that the log did not delete have a group, unless another one deletes them."""
        if group_id not in self._in_steps and self._offsets.has_any(group_id):
            self._ensure_group(group_id)
