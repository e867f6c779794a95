"""Transactional ids by name, and counted by state: how many are open, and since when, is known without a look at all of
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar, overload

from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState

T = TypeVar("T")

_ONGOING = TransactionState.ONGOING


class _Moments:
    """Times in milliseconds, some of them more than once: by the second, so that the earliest is found among the
    seconds and the milliseconds of one of them."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds: dict[int, dict[int, int]] = {}

    def add(self, moment_ms: int) -> None:
        counts = self._seconds.setdefault(moment_ms // 1000, {})
        counts[moment_ms] = counts.get(moment_ms, 0) + 1

    def remove(self, moment_ms: int) -> None:
        counts = self._seconds[moment_ms // 1000]
        counts[moment_ms] -= 1
        if not counts[moment_ms]:
            del counts[moment_ms]
            if not counts:
                del self._seconds[moment_ms // 1000]

    @property
    def earliest(self) -> int | None:
        return min(self._seconds[min(self._seconds)]) if self._seconds else None


class TransactionTable(MutableMapping[str, TransactionMetadata]):
    """Those of one shard."""

    def __init__(self) -> None:
        self._by_id: dict[str, TransactionMetadata] = {}
        self._by_state: Counter[TransactionState] = Counter()
        self._open_since = _Moments()
        self._prepared: dict[str, None] = {}

    def __getitem__(self, transactional_id: str) -> TransactionMetadata:
        return self._by_id[transactional_id]

    @overload
    def get(self, transactional_id: str, /) -> TransactionMetadata | None: ...
    @overload
    def get(self, transactional_id: str, /, default: TransactionMetadata | T) -> TransactionMetadata | T: ...
    def get(self, transactional_id: str, /, default: object = None) -> object:
        """As for every mapping, without the detour of a KeyError: each request asks."""
        return self._by_id.get(transactional_id, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def __setitem__(self, transactional_id: str, transaction: TransactionMetadata) -> None:
        before = self._by_id.get(transactional_id)
        if before is not None:
            self._leave(before)
        self._by_id[transactional_id] = transaction
        state = transaction.state
        self._by_state[state] += 1
        if state is _ONGOING:
            self._open_since.add(transaction.start_ms)
        elif state.is_prepared:
            self._prepared[transactional_id] = None

    def __delitem__(self, transactional_id: str) -> None:
        self._leave(self._by_id.pop(transactional_id))

    def popitem(self) -> tuple[str, TransactionMetadata]:
        """The last one, as for a dictionary: finding the first one takes longer the more were removed before it."""
        transactional_id, transaction = self._by_id.popitem()
        self._leave(transaction)
        return transactional_id, transaction

    def _leave(self, transaction: TransactionMetadata) -> None:
        state = transaction.state
        self._by_state[state] -= 1
        if state is _ONGOING:
            self._open_since.remove(transaction.start_ms)
        elif state.is_prepared:
            del self._prepared[transaction.transactional_id]

    @property
    def by_state(self) -> Mapping[TransactionState, int]:
        """How many are in each state that any has had. For reading only."""
        return self._by_state

    @property
    def oldest_start_ms(self) -> int | None:
        """When the oldest of the open transactions began."""
        return self._open_since.earliest

    @property
    def prepared(self) -> list[str]:
        """The ids of transactions that are decided and not complete."""
        return list(self._prepared)
