"""Whether a store is the one that holds the objects of this cluster.

A store has an id, in an object of its own, and the control plane has the id of the store that it refers to. With
another address in the settings, or an empty directory where a disk is not mounted, a broker would acknowledge records
that are never found again: every broker compares the two when it opens the store, and every few seconds from then on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from strandline.clock import Ids
from strandline.controlplane import RecordedStore, StoreRecords
from strandline.model import uuid_to_text
from strandline.objects import ObjectStore
from strandline.objects.marker import give_store_id, set_store_id, store_id
from strandline.objects.store import WrongStore


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUse:
    """What a store is for, and how to find out whether it is the right one while no id says so."""

    purpose: str
    what: str
    """For people: "the objects of diskless topics"."""
    setting: str
    key: str
    """The object that has the id."""
    is_lasting: bool = True
    """False for a store that ends with the process: it is never recorded, and never the one that is."""
    is_unused: Callable[[], Awaitable[bool]]
    """Whether nothing is kept in the store that is recorded."""
    may_move: Callable[[], bool]
    """Whether no other broker could be using the store that is recorded."""
    holds_ours: Callable[[ObjectStore], Awaitable[bool]]
    """Whether a store holds objects that the metadata names."""
    knows_copies: bool
    """Whether `holds_ours` is False for a copy that lacks the newest objects. If not, a store at another address than
    the recorded one is refused while the recorded one is in use: it may be such a copy."""
    moves_with_data: bool = False
    """Whether the store is a part of the data directory: at another address it is where that was moved."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    recorded: RecordedStore | None
    found: str | None
    holds_ours: bool

    @property
    def is_same(self) -> bool:
        """Whether the store has the recorded id. At another address it may be a copy."""
        return self.recorded is not None and self.recorded.store_id == self.found


class StoreIdentity:
    """Compares one store with what the control plane has recorded. Belongs to the event loop."""

    def __init__(self, use: StoreUse, records: StoreRecords, *, ids: Ids) -> None:
        self._use, self._records, self._ids = use, records, ids
        self._problem = ""
        self.is_settled = False
        """Whether the store was the recorded one at least once since the start."""
        self._settled_id: str | None = None
        """The id that it had when it was the last time; None of a store that does not last."""

    def why_wrong(self) -> WrongStore | None:
        """The error for calls while the newest comparison has found another store than the recorded one."""
        return WrongStore(self._problem) if self._problem else None

    async def compare(self, store: ObjectStore) -> None:
        """Return if the store is the recorded one, or may become it.

        Only reads, except for a store in use that has lost its id, or whose record the database has lost: it gets it
        back if the objects are there. Raises WrongStore, other ObjectStoreErrors, and SqlErrors.
        """
        comparison = await self._judge(store)
        if self.is_settled:
            self._settled_id = await self._record(store, comparison)

    async def settle(self, store: ObjectStore) -> None:
        """As `compare`; a store that may become the recorded one is given an id, and recorded."""
        self._settled_id = await self._record(store, await self._judge(store))
        self.is_settled = True

    async def accept(self, store: ObjectStore, *, is_forced: bool) -> RecordedStore:
        """Record a store that the objects were moved to. It gets an id of its own: the old one must not be used again.

        Raises WrongStore if the objects are not there, unless it is forced.
        """
        use = self._use
        recorded = await self._records.recorded_store(use.purpose)
        if not is_forced and not await use.holds_ours(store) and not await use.is_unused():
            was = "nowhere so far" if recorded is None else f"at {recorded.url}"
            raise WrongStore(f"{store.url} does not hold {use.what}, which were recorded {was}.")
        own = RecordedStore(uuid_to_text(self._ids.uuid()), store.url)
        await set_store_id(store, own.store_id, use.key)
        await self._records.replace_store(use.purpose, own)
        return own

    async def _record(self, store: ObjectStore, comparison: _Comparison) -> str | None:
        """Make it the recorded one unless it is. Returns its id."""
        recorded = comparison.recorded
        if not self._use.is_lasting or (comparison.is_same and self._needs_no_address(store, recorded)):
            return comparison.found
        is_known = recorded is not None and comparison.holds_ours
        wanted = recorded.store_id if recorded is not None and is_known else uuid_to_text(self._ids.uuid())
        own = RecordedStore(await give_store_id(store, wanted, self._use.key), store.url)
        instead_of = None if recorded is None else recorded.store_id
        now = await self._records.record_store(self._use.purpose, own, instead_of=instead_of)
        if now.store_id != own.store_id:  # another broker was faster, with another store
            raise self._wrong(store, now, own.store_id)
        return own.store_id

    async def _judge(self, store: ObjectStore) -> _Comparison:
        recorded = await self._records.recorded_store(self._use.purpose)
        while True:
            found = await store_id(store, self._use.key)
            comparison = await self._compared(store, recorded, found)
            if comparison is not None:
                self._problem = ""
                return comparison
            judged_by, recorded = recorded, await self._records.recorded_store(self._use.purpose)
            if recorded == judged_by:  # else this broker or another one has recorded its store meanwhile
                raise self._wrong(store, recorded, found)

    async def _compared(
        self, store: ObjectStore, recorded: RecordedStore | None, found: str | None
    ) -> _Comparison | None:
        """None if the store is another one than the recorded one, and may not become it."""
        use = self._use
        comparison = _Comparison(recorded, found, holds_ours=True)
        is_at_home = self._is_at_home(store, recorded)
        if (comparison.is_same and is_at_home) or not (use.is_lasting or recorded is not None):
            return comparison
        # A copy has the id as well: it has to have the newest objects, too. An id that is another one is proof enough:
        # the store may hold objects of this cluster all the same, if older brokers were misled.
        may_be_copied = found is None or comparison.is_same
        may_be_ours = recorded is None or (may_be_copied and (use.knows_copies or is_at_home))
        holds_ours = may_be_ours and await use.holds_ours(store)
        if not holds_ours and not (self._may_be_recorded(comparison) and await use.is_unused()):
            return None
        return _Comparison(recorded, found, holds_ours)

    def _may_be_recorded(self, comparison: _Comparison) -> bool:
        """Whether nothing but objects elsewhere could speak against the store."""
        if self.is_settled and comparison.recorded is None:
            # The database has lost the record of the store in use. An empty directory must not take its place.
            return comparison.found == self._settled_id
        if comparison.is_same and self._use.knows_copies:
            return True
        return not self.is_settled and (comparison.recorded is None or self._use.may_move())

    def _is_at_home(self, store: ObjectStore, recorded: RecordedStore | None) -> bool:
        return recorded is not None and (recorded.url == store.url or self._use.moves_with_data)

    def _needs_no_address(self, store: ObjectStore, recorded: RecordedStore | None) -> bool:
        """Whether the next comparison will find the same, also at an address that is not recorded."""
        return self._use.knows_copies or self._is_at_home(store, recorded)

    def _wrong(self, store: ObjectStore, recorded: RecordedStore | None, found: str | None) -> WrongStore:
        use = self._use
        here = f"is the store {found}" if found else f"has no object {use.key}"
        if recorded is not None and recorded.store_id == found:
            here = "is a copy of it that lacks the oldest or the newest objects"
            if not use.knows_copies:
                here = "has the same id: it may be a copy of it that lacks the newest objects"
        if recorded is None and self.is_settled and found != self._settled_id:
            expected = (
                f"the database has lost its record of the store {self._settled_id}, which this broker has used so far"
            )
        elif recorded is None:
            expected = "the objects that the database names are not there"
        else:
            expected = f"the database expects the store {recorded.store_id}, which was recorded at {recorded.url}"
        self._problem = (
            f"{use.setting}={store.url} is not the store that holds {use.what}: {expected}, and {store.url} {here}. "
            f"Nothing is read or written there. Give {use.setting} the address of that store and restart the broker; "
            f"if it is a directory, see whether its disk is mounted. If the objects were moved to {store.url}, say so "
            f"with `strandline stores accept {use.purpose}`."
        )
        return WrongStore(self._problem)
