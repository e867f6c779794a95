"""A map that is never changed, and whose changed copies share with it what did not change.

The metadata of a million topics changes one topic at a time, and components that hold an image may go on reading it.
The entries are in buckets, dicts of some hundred entries each; a change copies the list of buckets and the buckets that
it touches. There are as many buckets as the entries need, and they grow by one at a time (linear hashing): no change
pays for all entries.

Up to `ENTRIES_PER_BUCKET` entries are in the order in which they came. More entries are in no order: a caller that
needs one sorts them.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any, Final, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")

ENTRIES_PER_BUCKET: Final = 256


class BucketMap(Mapping[K, V_co]):
    """See the module. Equal to any mapping with the same entries."""

    __slots__ = ("_buckets", "_count", "_mask")

    def __init__(self, entries: Mapping[K, V_co] | None = None) -> None:
        self._buckets: list[dict[K, V_co]] = [{}]
        self._count = 0
        self._mask = 0
        if entries:
            editor: BucketEditor[K, Any] = BucketEditor(self, room=len(entries))
            editor.put_all(entries.items())
            self._take(editor)

    @classmethod
    def of(cls, entries: Mapping[K, V_co]) -> BucketMap[K, V_co]:
        """The map itself, or one with the entries of a map of another kind."""
        return entries if isinstance(entries, BucketMap) else BucketMap(entries)

    def _take(self, editor: BucketEditor[K, Any]) -> None:
        self._buckets, self._count = editor.hand_over()
        self._mask = _mask(len(self._buckets))

    def __getitem__(self, key: K) -> V_co:
        at = hash(key) & self._mask
        if at >= len(self._buckets):
            at &= self._mask >> 1
        return self._buckets[at][key]

    @overload
    def get(self, key: K, /) -> V_co | None: ...

    @overload
    def get(self, key: K, /, default: V_co | T) -> V_co | T: ...

    def get(self, key: K, /, default: Any = None) -> Any:
        """The value of the key, or the default."""
        at = hash(key) & self._mask
        if at >= len(self._buckets):
            at &= self._mask >> 1
        return self._buckets[at].get(key, default)

    def __contains__(self, key: object) -> bool:
        at = hash(key) & self._mask
        if at >= len(self._buckets):
            at &= self._mask >> 1
        return key in self._buckets[at]

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self._buckets)

    def __len__(self) -> int:
        return self._count

    def values(self) -> ValuesView[V_co]:
        return _Values(self)

    def items(self) -> ItemsView[K, V_co]:
        return _Items(self)

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Hashes of strings differ between processes, and with them the bucket of a key."""
        return type(self), (dict(self.items()),)


class _Values(ValuesView[V_co]):
    _mapping: BucketMap[Any, V_co]

    def __iter__(self) -> Iterator[V_co]:
        return chain.from_iterable(bucket.values() for bucket in self._mapping._buckets)


class _Items(ItemsView[K, V_co]):
    _mapping: BucketMap[K, V_co]

    def __iter__(self) -> Iterator[tuple[K, V_co]]:
        return chain.from_iterable(bucket.items() for bucket in self._mapping._buckets)


class BucketEditor(Generic[K, V]):
    """Collects changes of a map, and gives the changed one.

    `room`: an empty map is about to get so many entries, and its buckets need not be divided one by one.
    """

    __slots__ = ("_base", "_buckets", "_count", "_mask", "_own")

    def __init__(self, base: BucketMap[K, V], *, room: int = 0) -> None:
        self._base = base
        self._buckets: list[dict[K, V]] = base._buckets  # copied when the first of them changes
        self._count = base._count
        self._own: set[int] = set()  # buckets that are no longer those of the base
        if room and not self._count:
            self._buckets = [{} for _ in range(-(-room // ENTRIES_PER_BUCKET))]
            self._own.update(range(len(self._buckets)))
        self._mask = _mask(len(self._buckets))

    def put(self, key: K, value: V) -> None:
        """Add an entry, or give one another value."""
        bucket = self._bucket(key)
        before = len(bucket)
        bucket[key] = value
        if len(bucket) != before:
            self._count += 1
            if self._count > ENTRIES_PER_BUCKET * len(self._buckets):
                self._grow()

    def put_all(self, entries: Iterable[tuple[K, V]]) -> None:
        """Put many entries, as `put` does with one."""
        for key, value in entries:
            self.put(key, value)

    def get(self, key: K) -> V | None:
        """The value of the key as changed so far."""
        return self._buckets[self._place(key)].get(key)

    def discard(self, key: K) -> None:
        """Remove an entry if there is one."""
        if key in self._buckets[self._place(key)]:
            del self._bucket(key)[key]
            self._count -= 1

    def build(self) -> BucketMap[K, V]:
        """The map with the changes, or the one before if there are none. The editor is of no use afterwards."""
        if not self._own:
            return self._base
        made: BucketMap[K, V] = BucketMap()
        made._take(self)
        return made

    def hand_over(self) -> tuple[list[dict[K, V]], int]:
        """The buckets, and the number of entries."""
        return self._buckets, self._count

    def _place(self, key: K) -> int:
        at = hash(key) & self._mask
        return at if at < len(self._buckets) else at & (self._mask >> 1)

    def _bucket(self, key: K) -> dict[K, V]:
        at = self._place(key)
        if at not in self._own:
            if not self._own:
                self._buckets = self._buckets.copy()
            self._own.add(at)
            self._buckets[at] = self._buckets[at].copy()
        return self._buckets[at]

    def _grow(self) -> None:
        """One bucket more: it gets its part of the entries of the bucket where they were looked for so far."""
        new = len(self._buckets)
        self._mask = _mask(new + 1)
        old = new & (self._mask >> 1)
        kept: dict[K, V] = {}
        moved: dict[K, V] = {}
        for key, value in self._buckets[old].items():
            (moved if hash(key) & self._mask == new else kept)[key] = value
        self._buckets[old] = kept
        self._buckets.append(moved)
        self._own |= {old, new}


def _mask(buckets: int) -> int:
    """The bits of a hash that say where an entry is, of so many buckets."""
    return (1 << (buckets - 1).bit_length()) - 1
