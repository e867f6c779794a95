"""Judges what members of groups were given: each committed record at least once, and nothing that is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chaos.history import Delivery, GroupOffset
from chaos.values import SHARE_GROUP, Place, is_list
from chaos.violations import Kind, Violation


def check_deliveries(
    deliveries: Iterable[Delivery],
    committed: Mapping[Place, Sequence[tuple[int, str]]],
    offsets: Iterable[GroupOffset],
) -> Iterator[Violation]:
    """What lies below the last offset of a group was given to one of its members, and all of it to a share group."""
    given: dict[str, dict[Place, set[int]]] = {}
    for one in deliveries:
        places = given.setdefault(one.group, {})
        places.setdefault((one.topic, one.partition), set()).update(offset for offset, _ in one.records)
    for at in offsets:
        place = (at.topic, at.partition)
        if at.group in given:
            yield from _check(at.group, place, given[at.group].get(place, set()), committed.get(place, ()), at.offset)
    if SHARE_GROUP in given:
        for place, records in committed.items():
            if is_list(place[0]):
                yield from _check(SHARE_GROUP, place, given[SHARE_GROUP].get(place, set()), records, None)


def _check(
    group: str, place: Place, given: set[int], committed: Sequence[tuple[int, str]], upto: int | None
) -> Iterator[Violation]:
    missing = [offset for offset, _ in committed if offset not in given and (upto is None or offset < upto)]
    if missing:
        where = f"{len(missing)} committed records of {place[0]}-{place[1]}, from {missing[0]} on"
        until = "" if upto is None else f", and its offset is {upto}"
        yield Violation(Kind.LOST, f"No member of {group} was given {where}{until}.")
