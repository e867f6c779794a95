"""Files and partitions that fail are tried again without end, later each time; the others do not wait for them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from strandline.clock import Clock

FIRST_WAIT_SECONDS: Final = 2.0
LONGEST_WAIT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What has gone wrong with one thing, the last time."""

    attempts: int
    sentence: str
    retry_at: float
    """On the monotonic clock."""


class Troubles:
    """Which things have failed, and when each is to be tried again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Hashable, Trouble] = {}

    def __len__(self) -> int:
        return len(self._known)

    def is_waiting(self, key: Hashable) -> bool:
        """Whether it is too early to try it again."""
        trouble = self._known.get(key)
        return trouble is not None and self._clock.monotonic() < trouble.retry_at

    def has_failed(self, key: Hashable) -> bool:
        """Whether the last attempt has failed."""
        return key in self._known

    def failed(self, key: Hashable, sentence: str) -> Trouble:
        """It has failed, once more."""
        before = self._known.get(key)
        attempts = before.attempts + 1 if before is not None else 1
        wait = min(FIRST_WAIT_SECONDS * 2 ** min(attempts - 1, 30), LONGEST_WAIT_SECONDS)
        trouble = Trouble(attempts=attempts, sentence=sentence, retry_at=self._clock.monotonic() + wait)
        self._known[key] = trouble
        return trouble

    def seconds_until_retry(self, kind: type, *, since: float) -> float | None:
        """How long until the first thing of this type may be tried again; None if none has failed.

        Whatever was due at `since` has been tried since then, or is not there any more, and is forgotten.
        """
        mine = {key: trouble.retry_at for key, trouble in self._known.items() if isinstance(key, kind)}
        for key in [key for key, retry_at in mine.items() if retry_at <= since]:
            self.over(key)
            del mine[key]
        return max(0.0, min(mine.values()) - self._clock.monotonic()) if mine else None

    def over(self, key: Hashable) -> None:
        """It has succeeded, or another run has done it."""
        self._known.pop(key, None)

    def failing(self, attempts: int) -> int:
        """How many things have failed so often, or more often."""
        return sum(trouble.attempts >= attempts for trouble in self._known.values())

    def sentences(self) -> list[str]:
        """What is wrong now."""
        return [trouble.sentence for trouble in self._known.values()]
