"""Changes of share partitions, those of each one after the other: a snapshot has to hold what was written before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from strandline.coordinators.runtime import KeyValue, RecordSink, WriteResult, client_error
from strandline.coordinators.share_states.schemas import kind_of
from strandline.coordinators.share_states.values import SharePartitionKey
from strandline.crash import crash_point
from strandline.errors import StrandlineError
from strandline.model import Offset

Changed: TypeAlias = Callable[[StrandlineError | None], None]
"""Is told that a change is committed, or why it is not known to be."""
Decide: TypeAlias = Callable[[], KeyValue | None]
"""The record of a change; None if there is nothing to change. Raises a refusal."""


class KeyTurns:
    """The changes of one shard. `committed` gets every record that is committed, before its request is answered."""

    def __init__(self, sink: RecordSink, committed: Callable[[SharePartitionKey, KeyValue, Offset], None]) -> None:
        self._sink, self._committed = sink, committed
        self._waiting: dict[SharePartitionKey, deque[tuple[Decide, Changed]]] = {}
        """The first of them is being written."""

    def add(self, key: SharePartitionKey, decide: Decide, answer: Changed) -> None:
        """Decide when the changes before it are committed, and write what was decided."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append((decide, answer))
            return
        self._waiting[key] = deque([(decide, answer)])
        self._go_on(key)

    def _go_on(self, key: SharePartitionKey) -> None:
        waiting = self._waiting[key]
        while waiting:
            decide, answer = waiting[0]
            try:
                record = decide()
            except StrandlineError as error:
                waiting.popleft()
                answer(error)
                continue
            if record is not None:
                crash_point(f"share.state.before_{kind_of(record)}")
                self._sink.write([record], partial(self._written, key, record))
                return
            waiting.popleft()
            answer(None)
        del self._waiting[key]

    def _written(self, key: SharePartitionKey, record: KeyValue, result: WriteResult) -> None:
        waiting = self._waiting[key]
        if result.error is not None:
            # What waits behind a write whose outcome is not known does not get another one.
            del self._waiting[key]
            error = client_error(result.error)
            for _, answer in waiting:
                answer(error)
            return
        crash_point(f"share.state.after_{kind_of(record)}")
        self._committed(key, record, result.base_offset)
        waiting.popleft()[1](None)
        self._go_on(key)
