"""Which partitions a command is about: `orders` for all of a topic, `orders:0,2` for some."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from strandline.client import CommandFailed, Pair


def parse_scope(entries: Sequence[str]) -> dict[str, frozenset[int] | None]:
    """The partitions of each topic that was named; None for all of them. Raises CommandFailed."""
    scope: dict[str, frozenset[int] | None] = {}
    for entry in entries:
        topic, colon, listed = entry.partition(":")
        if not topic:
            raise CommandFailed(f"--topic must be TOPIC or TOPIC:0,1,2, but is {entry!r}.")
        if not colon:
            scope[topic] = None
            continue
        numbers = listed.split(",")
        if not all(number.isdecimal() for number in numbers):
            raise CommandFailed(f"--topic must be TOPIC or TOPIC:0,1,2, but is {entry!r}.")
        known = scope.get(topic, frozenset())
        scope[topic] = None if known is None else known | frozenset(int(number) for number in numbers)
    return scope


def within_scope(scope: Mapping[str, frozenset[int] | None], existing: Collection[Pair], *, missing: str) -> list[Pair]:
    """The partitions of `existing` that the scope names, in order.

    Raises CommandFailed for a topic or partition that is not among them; `missing` ends that sentence.
    """
    chosen: set[Pair] = set()
    for topic, numbers in scope.items():
        known = {number for name, number in existing if name == topic}
        if not known:
            raise CommandFailed(f"Topic {topic} {missing}.")
        absent = sorted((numbers or frozenset()) - known)
        if absent:
            raise CommandFailed(f"Partition {absent[0]} of topic {topic} {missing}.")
        chosen.update((topic, number) for number in (known if numbers is None else numbers))
    return sorted(chosen)
