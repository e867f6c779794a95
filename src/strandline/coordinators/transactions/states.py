"""The states of a transaction, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """With the numbers of `__transaction_state`. `label` is how Kafka's tools show it."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """It expires: a tombstone is on its way."""
    PREPARE_EPOCH_FENCE = 7
    """Its producer was replaced, or took too long, and it is about to be aborted. Never written."""

    @property
    def label(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_complete(self) -> bool:
        """No transaction is under way, and none is being ended."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def is_prepared(self) -> bool:
        """It is decided, and markers are being written."""
        return self in _PREPARED


_S = TransactionState
_PREPARED: Final = (_S.PREPARE_COMMIT, _S.PREPARE_ABORT)  # made once: members of an enumeration cost a call each
_COMPLETE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

LEGAL_BEFORE: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: _COMPLETE,
    _S.ONGOING: _COMPLETE | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # A producer of transaction version 2 may abort a transaction that has no partition.
    _S.PREPARE_ABORT: _COMPLETE | {_S.ONGOING, _S.PREPARE_EPOCH_FENCE},
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: _COMPLETE,
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
"""By state, the states from which it may be reached."""
