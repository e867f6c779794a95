"""What comparisons of a store with somebody's knowledge of it have in common: findings, a report, many trips at once.

Here: nothing of what the objects are. Whoever compares has kinds of trouble of their own.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

_AT_ONCE: Final = 16

# What is being done, how much of it is done.
Progress: TypeAlias = Callable[[str, int], None]


def ignore_progress(what: str, done: int) -> None:
    """For callers without a terminal."""


class Finding(NamedTuple):
    """One thing that is wrong."""

    kind: enum.StrEnum
    key: str
    """The object with which it is wrong, or what several of them have in common."""
    size: int
    age_ms: int
    """Since it was written or changed its state, as far as known; 0 where nobody knows."""
    detail: str
    is_repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """What was compared, and what was found."""

    objects: int
    object_bytes: int
    young_objects: int
    """That nobody knows, and that are young enough to be on their way."""
    foreign_objects: int
    """Not named as ours are. Never touched."""
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        return all(finding.is_repaired for finding in self.findings)


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int = _AT_ONCE) -> None:
    """Some at a time: each may be a trip to the store. Stops at the first error, and raises it."""
    waiting = iter(items)

    async def one_after_the_other() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(one_after_the_other())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
