"""What all comparisons of a store with an index of its objects share: findings, a report, parallel requests.

Not here: what the objects mean, and which kinds of findings there are.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

_AT_ONCE: Final = 16

# Called with what is being compared, and how many items are done.
Progress: TypeAlias = Callable[[str, int], None]


def ignore_progress(what: str, done: int) -> None:
    """A `Progress` that shows nothing."""


class Finding(NamedTuple):
    """One difference between the store and the index."""

    kind: enum.StrEnum
    key: str
    """The object, or the common part of the keys of several objects."""
    size: int
    age_ms: int
    """Since the object was written or changed its state; 0 if that is not known."""
    detail: str
    is_repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """How much was compared, and what was found."""

    objects: int
    object_bytes: int
    young_objects: int
    """Not in the index, but young enough to be uploads that are not committed yet."""
    foreign_objects: int
    """With keys that are not ours. Never touched."""
    findings: tuple[Finding, ...]

    @property
    def has_findings(self) -> bool:
        """Whether something is wrong, and was not repaired."""
        return not all(finding.is_repaired for finding in self.findings)

    @property
    def is_complete(self) -> bool:
        """Whether everything could be compared."""
        return True

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong: what was not compared may be."""
        return self.is_complete and not self.has_findings


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int = _AT_ONCE) -> None:
    """Do `work` for all items, `at_once` at a time. Stops at the first error, and raises it."""
    waiting = iter(items)

    async def take_turns() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(take_turns())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
