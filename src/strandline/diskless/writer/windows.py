"""Which producers can send no more before they get an answer. Pure.

A client with idempotence has at most five requests on their way. Once all clients with batches in the next object are
at their limit, nothing else will come into it: to wait for more only delays their answers. The limit of a client is not
known here, nor is which batches came in one request. So what a producer had without an answer at most, lately, counts
as its limit, and never less than five batches, which every client may send.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.diskless.values import DisklessAppend

_LEAST: Final = 5


class _SendWindow:
    """The batches of one producer without an answer: how many there are, and the most there have been."""

    __slots__ = ("limit", "used")

    def __init__(self) -> None:
        self.used = 0
        self.limit = _LEAST


class SendWindows:
    """The producers with batches without an answer, and which of them have some in the next object."""

    def __init__(self) -> None:
        self._windows: dict[int, _SendWindow] = {}
        self._gathering: set[int] = set()
        self._is_open = False

    @property
    def are_used_up(self) -> bool:
        """Whether no producer with a batch in the next object can send more. False if one has no known limit."""
        windows = self._windows
        return not self._is_open and all(windows[each].used >= windows[each].limit for each in self._gathering)

    def sent(self, batch: DisklessAppend) -> None:
        """A batch goes into the next object."""
        header = batch.header
        if not header.has_producer_id:
            self._is_open = True
            return
        window = self._windows.get(header.producer_id)
        if window is None:
            window = self._windows[header.producer_id] = _SendWindow()
        window.used += 1
        window.limit = max(window.limit, window.used)
        self._gathering.add(header.producer_id)

    def rotated(self) -> None:
        """The next object is empty again."""
        self._gathering.clear()
        self._is_open = False

    def waited(self) -> None:
        """Nothing more came, for as long as the rules allow to wait: it was all that the producers could send."""
        for producer in self._gathering:
            window = self._windows[producer]
            window.limit = max(window.used, _LEAST)

    def answered(self, batches: Iterable[DisklessAppend]) -> None:
        """Batches have their answers."""
        for batch in batches:
            producer = batch.header.producer_id
            window = self._windows.get(producer)
            if window is not None:
                window.used -= 1
                if window.used == 0:
                    del self._windows[producer]
