"""What heartbeats tell the controller of log directories that have failed."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from strandline.clock import Clock


class FailedDirectories:
    """The directories that have failed since the broker registered, and how long the controller may not have known.

    By level: each heartbeat names all of them.
    """

    def __init__(self, failed: Callable[[], tuple[uuid.UUID, ...]], clock: Clock, *, patience: float) -> None:
        self._failed, self._clock, self.patience = failed, clock, patience
        self._told: frozenset[uuid.UUID] = frozenset()
        self._untold_since: float | None = None

    def all(self) -> tuple[uuid.UUID, ...]:
        """What the next heartbeat has to name."""
        return self._failed()

    def told(self, directories: tuple[uuid.UUID, ...]) -> None:
        """The controller has answered a heartbeat that named these."""
        self._told = frozenset(directories)
        if self._told.issuperset(self._failed()):
            self._untold_since = None

    def is_overdue(self) -> bool:
        """True if the controller was not told for so long that this broker must stop: other brokers could lead."""
        if self._told.issuperset(self._failed()):
            self._untold_since = None
            return False
        if self._untold_since is None:
            self._untold_since = self._clock.monotonic()
        return self._clock.monotonic() - self._untold_since >= self.patience
