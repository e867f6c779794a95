"""Judges the exactly-once copies: what lies below the group's offset was copied once and in order, the rest never."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chaos.history import GroupOffset
from chaos.values import Place, source_of, topic_of_copies
from chaos.violations import Kind, Violation


def check_copies(
    committed: Mapping[Place, Sequence[tuple[int, str]]], offsets: Iterable[GroupOffset]
) -> Iterator[Violation]:
    """Compare what was copied with the offsets that were committed in the same transactions."""
    for one in offsets:
        source = committed.get((one.topic, one.partition), [])
        copies = committed.get((topic_of_copies(one.topic), one.partition), [])
        yield from _check(f"{one.topic}-{one.partition}", one.offset, source, copies)


def _check(
    where: str, upto: int, source: Sequence[tuple[int, str]], copies: Sequence[tuple[int, str]]
) -> Iterator[Violation]:
    original = dict(source)
    copied: dict[int, int] = {}
    last = -1
    for offset, value in copies:
        come_from = source_of(value)
        if come_from is None or original.get(come_from[0]) != come_from[1]:
            text = f"{value} at {offset} copies a value that is not committed in {where}."
            yield Violation(Kind.ABORTED_READ, text)
            continue
        position, _ = come_from
        if position in copied:
            text = f"Offset {position} of {where} was copied to {copied[position]} and to {offset}."
            yield Violation(Kind.DOUBLED, text)
        elif position < last:
            text = f"Offset {position} of {where} was copied after {last}, to {offset}."
            yield Violation(Kind.REORDERED, text)
        copied[position] = offset
        last = max(last, position)
        if position >= upto:
            text = f"Offset {position} of {where} was copied, and the group's offset is {upto}, not beyond it."
            yield Violation(Kind.PARTIAL, text)
    for position, value in source:
        if position < upto and position not in copied:
            text = f"{value} at {position} of {where} has no copy, and the group's offset is {upto}."
            yield Violation(Kind.LOST, text)
