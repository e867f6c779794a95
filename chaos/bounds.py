"""Judges what observers were told while the run went on: starts, ends and offsets of groups never go back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.history import Bounds, GroupOffset
from chaos.violations import Kind, Violation


def check_bounds(bounds: Iterable[Bounds]) -> Iterator[Violation]:
    """One observer asks one question at a time, so that each answer is newer than the one before."""
    last: dict[tuple[str, str, str, int], Bounds] = {}
    for one in bounds:
        key = (one.observer, one.isolation, one.topic, one.partition)
        before = last.get(key)
        if before is not None:
            where = f"{one.topic}-{one.partition} with {one.isolation} for {one.observer} at {one.at:.1f} s"
            if one.end < before.end:
                text = f"The end of {where} is {one.end}, after {before.end} at {before.at:.1f} s."
                yield Violation(Kind.WENT_BACK, text)
            if one.start < before.start:
                text = f"The start of {where} is {one.start}, after {before.start} at {before.at:.1f} s."
                yield Violation(Kind.WENT_BACK, text)
        if one.start != (0 if before is None else before.start):
            text = f"{one.topic}-{one.partition} begins at {one.start} for {one.observer} at {one.at:.1f} s"
            yield Violation(Kind.GAP, f"{text}, and nothing was ever deleted.")
        last[key] = one


def check_group(offsets: Iterable[GroupOffset]) -> Iterator[Violation]:
    """Copiers only go forward, and a zombie among them is fenced."""
    last: dict[tuple[str, str, int], GroupOffset] = {}
    for one in offsets:
        key = (one.group, one.topic, one.partition)
        before = last.get(key)
        if before is not None and one.offset < before.offset:
            text = f"The offset of {one.group} in {one.topic}-{one.partition} is {one.offset} at {one.at:.1f} s"
            yield Violation(Kind.WENT_BACK, f"{text}, after {before.offset} at {before.at:.1f} s.")
        last[key] = one


def last_offsets(offsets: Iterable[GroupOffset]) -> list[GroupOffset]:
    """The newest offset of each partition."""
    return list({(one.group, one.topic, one.partition): one for one in offsets}.values())
