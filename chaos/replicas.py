"""Judges the logs of replicas after the end: below the high watermark they are the same, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from chaos.history import Replica, StoredBatch
from chaos.values import Place
from chaos.violations import Kind, Violation


def check_replicas(replicas: Iterable[Replica]) -> Iterator[Violation]:
    """Each replica that is to be there is, has all batches, and they are those of the others."""
    known: dict[Place, list[Replica]] = {}
    for one in replicas:
        known.setdefault((one.topic, one.partition), []).append(one)
    for found in known.values():
        for one in found:
            yield from _alone(one)
        yield from _together(found)


def _named(one: Replica) -> str:
    return f"The replica of {one.topic}-{one.partition} on broker {one.broker}"


def _alone(one: Replica) -> Iterator[Violation]:
    if one.start != 0:
        yield Violation(Kind.GAP, f"{_named(one)} begins at {one.start}, and nothing was ever deleted.")
    for batch in one.batches:
        if not batch.is_whole:
            yield Violation(Kind.TORN, f"{_named(one)} has a batch at {batch.offset} whose checksum is wrong.")


def _together(found: list[Replica]) -> Iterator[Violation]:
    first = found[0]
    missing = sorted({*first.assigned} - {one.broker for one in found})
    if missing:
        text = f"{first.topic}-{first.partition} has no replica on brokers {missing}, which are to have one."
        yield Violation(Kind.DIVERGED, text)
    upto = max(one.high_watermark for one in found)
    longest = max(found, key=lambda one: len(_below(one, upto)))
    for one in found:
        if one is not longest:
            yield from _compare(longest, one, upto)


def _below(one: Replica, upto: int) -> list[StoredBatch]:
    return [batch for batch in one.batches if batch.offset < upto]


def _compare(left: Replica, right: Replica, upto: int) -> Iterator[Violation]:
    """The first batch in which they differ. What comes after it differs, too, and tells nothing more."""
    for one, other in zip_longest(_below(left, upto), _below(right, upto)):
        if one != other:
            text = f"{_named(right)} has {_what(other)}, and broker {left.broker} has {_what(one)}"
            yield Violation(Kind.DIVERGED, f"{text}; the high watermark is {upto}.")
            return


def _what(batch: StoredBatch | None) -> str:
    if batch is None:
        return "no batch there"
    return f"the batch {batch.digest} of offsets {batch.offset} to {batch.next_offset - 1}"
