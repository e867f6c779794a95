"""Transactional ids by name, and counted by state: how many are open is known without a look at all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar, overload

from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState

T = TypeVar("T")

_ONGOING = TransactionState.ONGOING


class TransactionTable(MutableMapping[str, TransactionMetadata]):
    """Those of one shard."""

    def __init__(self) -> None:
        self._by_id: dict[str, TransactionMetadata] = {}
        self._by_state: Counter[TransactionState] = Counter()
        self._open_since: dict[str, int] = {}
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
            self._leave(transactional_id, before.state)
        self._by_id[transactional_id] = transaction
        state = transaction.state
        self._by_state[state] += 1
        if state is _ONGOING:
            self._open_since[transactional_id] = transaction.start_ms
        elif state.is_prepared:
            self._prepared[transactional_id] = None

    def __delitem__(self, transactional_id: str) -> None:
        self._leave(transactional_id, self._by_id.pop(transactional_id).state)

    def _leave(self, transactional_id: str, state: TransactionState) -> None:
        self._by_state[state] -= 1
        if state is _ONGOING:
            del self._open_since[transactional_id]
        elif state.is_prepared:
            del self._prepared[transactional_id]

    def clear(self) -> None:
        """Forget all of them."""
        self._by_id.clear()
        self._by_state.clear()
        self._open_since.clear()
        self._prepared.clear()

    @property
    def by_state(self) -> Mapping[TransactionState, int]:
        """How many are in each state that any has had. For reading only."""
        return self._by_state

    @property
    def oldest_start_ms(self) -> int | None:
        """When the oldest of the open transactions began."""
        return min(self._open_since.values(), default=None)

    @property
    def prepared(self) -> list[str]:
        """The ids of transactions that are decided and not complete."""
        return list(self._prepared)
