"""Says what in a history must not be. Pure: the history in, violations out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from chaos.bounds import check_bounds, check_group, last_offsets
from chaos.copies import check_copies
from chaos.deliveries import check_deliveries
from chaos.dependencies import check_cycles
from chaos.history import (
    COMMITTED,
    UNCOMMITTED,
    Append,
    Content,
    Delivery,
    Event,
    Outcome,
    Read,
    Seen,
)
from chaos.index import Index
from chaos.intents import check_intents, with_lost
from chaos.progress import check_progress
from chaos.replicas import check_replicas
from chaos.sequences import check_sequences
from chaos.values import COPIERS, REPLICATED, TORN, Place, copy_topic, list_topic, stream_of
from chaos.violations import Kind, Violation


def verify(events: Iterable[Event]) -> list[Violation]:
    """All violations of a history."""
    known = list(events)
    index = Index(with_lost(known))
    found = [Violation(Kind.TROUBLE, f"{one.what}: {one.text}") for one in index.troubles]
    for check in (_completeness, _outcomes, _doubles, _order, _meaning, _density, _isolation, _sessions, _strangers):
        found += check(index)
    found += check_intents(known)
    offsets = last_offsets(index.offsets)
    found += check_copies(index.final(COMMITTED), [one for one in offsets if one.group == COPIERS])
    found += check_deliveries(index.deliveries, index.final(COMMITTED), offsets)
    found += check_replicas(index.replicas)
    found += check_progress(known)
    found += check_sequences(index.contents)
    found += check_cycles(index.attempts)
    found += check_bounds(index.bounds)
    found += check_group(index.offsets)
    return found


def _completeness(index: Index) -> Iterator[Violation]:
    """A judge who has not seen the end must not say that all is well."""
    if index.run is None:
        yield Violation(Kind.NOT_READ, "The history does not begin with a run.")
    elif REPLICATED in index.run.tiers:
        if not index.calm:
            yield Violation(Kind.NOT_READ, "There was no time without faults in which everything had to go on.")
        stored = {(one.topic, one.partition) for one in index.replicas}
        for topic, partition in sorted(index.places() - stored):
            if topic in (list_topic(REPLICATED), copy_topic(REPLICATED)):
                yield Violation(Kind.NOT_READ, f"The files of the replicas of {topic}-{partition} were not read.")
    for isolation in (COMMITTED, UNCOMMITTED):
        for topic, partition in sorted(index.places() - index.final(isolation).keys()):
            yield Violation(Kind.NOT_READ, f"{topic}-{partition} was not read to its end with {isolation}.")


def _outcomes(index: Index) -> Iterator[Violation]:
    """Committed: everything is there. Aborted: nothing is. Unknown: all or nothing."""
    committed = {
        (place, value): offset for place, records in index.final(COMMITTED).items() for offset, value in records
    }
    for attempt in index.attempts:
        there = [one for one in attempt.appends if ((one.topic, one.partition), one.value) in committed]
        gone = [one for one in attempt.appends if ((one.topic, one.partition), one.value) not in committed]
        if attempt.outcome is Outcome.ABORTED:
            for one in there:
                text = f"{one.value} was aborted by {attempt.writer} and is read in {one.topic}-{one.partition}."
                yield Violation(Kind.ABORTED_READ, text)
        elif there and gone:
            text = f"{attempt.outcome} at {attempt.at:.1f} s: {_values(there)} are there, {_values(gone)} are not."
            yield Violation(Kind.PARTIAL, f"A transaction of {attempt.writer}, {text}")
        elif attempt.outcome is Outcome.COMMITTED:
            for one in gone:
                text = f"{one.value} of {attempt.writer} is not in {one.topic}-{one.partition} (offset {one.offset})."
                yield Violation(Kind.LOST, text)


def _values(appends: Sequence[Append]) -> str:
    return ", ".join(one.value for one in appends[:5])


def _doubles(index: Index) -> Iterator[Violation]:
    """Values are unique: in one full read of everything each is at one place, unless its producer repeats itself."""
    repeating = index.repeating_streams()
    for isolation in (COMMITTED, UNCOMMITTED):
        counts: Counter[str] = Counter()
        for records in index.final(isolation).values():
            counts.update(value for _, value in records)
        for value, count in counts.items():
            if count > 1 and stream_of(value)[0] not in repeating:
                yield Violation(Kind.DOUBLED, f"{value} is there {count} times with {isolation}.")


def _order(index: Index) -> Iterator[Violation]:
    """In a partition the values of one producer have the order in which it sent them, unless it repeats itself."""
    repeating = index.repeating_streams()
    for isolation in (COMMITTED, UNCOMMITTED):
        for (topic, partition), records in index.final(isolation).items():
            last: dict[str, tuple[int, int]] = {}
            for offset, value in records:
                stream, number = stream_of(value)
                before, before_at = last.get(stream, (-1, -1))
                if number < before and stream not in repeating:
                    text = f"{value} at offset {offset} comes after {stream}/{before} at {before_at}"
                    yield Violation(Kind.REORDERED, f"{text} in {topic}-{partition} with {isolation}.")
                last[stream] = (number, offset)


def _meaning(index: Index) -> Iterator[Violation]:
    """An offset holds the same value for everybody and always, and what a consumer was given stays."""
    meaning: dict[tuple[str, int, int], tuple[str, str]] = {}
    for content in sorted(index.contents, key=lambda one: one.isolation, reverse=True):
        reads = _reads(content)
        yield from _compare(meaning, reads, f"{content.source} with {content.isolation}", is_final=True)
    for seen in index.seen:
        yield from _compare(meaning, _reads(seen), seen.reader, is_final=False)
    for delivery in index.deliveries:
        yield from _compare(meaning, _reads(delivery), delivery.member, is_final=False)
    for attempt in index.attempts:
        yield from _compare(meaning, attempt.reads, attempt.writer, is_final=False)
        for one in attempt.appends:
            known = meaning.get((one.topic, one.partition, one.offset)) if one.offset is not None else None
            if known is not None and known[0] != one.value:
                text = f"{attempt.writer} was told that {one.value} is at {one.offset} of {one.topic}-{one.partition}"
                yield Violation(Kind.CHANGED, f"{text}; {known[1]} finds {known[0]} there.")


def _reads(read: Content | Seen | Delivery) -> Iterator[Read]:
    for offset, value in read.records:
        yield Read(topic=read.topic, partition=read.partition, offset=offset, value=value)


def _compare(
    meaning: dict[tuple[str, int, int], tuple[str, str]], reads: Iterable[Read], who: str, *, is_final: bool
) -> Iterator[Violation]:
    for read in reads:
        at, where = (read.topic, read.partition, read.offset), f"{read.offset} of {read.topic}-{read.partition}"
        known = meaning.setdefault(at, (read.value, who)) if is_final else meaning.get(at)
        if read.value.startswith(TORN):
            yield Violation(Kind.TORN, f"{who} read a record at {where} that was not sent like this: {read.value}.")
        elif known is None:
            text = f"{who} read {read.value} at {where}, and nothing is there at the end."
            yield Violation(Kind.LOST, text)
        elif known[0] != read.value:
            text = f"{where} is {known[0]} for {known[1]}, {read.value} for {who}."
            yield Violation(Kind.CHANGED, text)


def _density(index: Index) -> Iterator[Violation]:
    """From 0 to the end each offset is a record or a marker; full reads of one level are equal."""
    first: dict[tuple[str, Place], Content] = {}
    for content in index.contents:
        place = (content.topic, content.partition)
        named = f"{content.topic}-{content.partition} from {content.source} with {content.isolation}"
        offsets = [offset for offset, _ in content.records]
        if content.start != 0:
            yield Violation(Kind.GAP, f"{named} begins at {content.start}, and nothing was ever deleted.")
        if any(later <= earlier for earlier, later in pairwise(offsets)):
            yield Violation(Kind.REORDERED, f"{named} has offsets that do not rise.")
        if content.markers is not None:
            there = {*offsets, *content.markers}
            missing = [offset for offset in range(content.start, content.end) if offset not in there]
            more = sorted(offset for offset in there if not content.start <= offset < content.end)
            if missing or more:
                text = f"lacks offsets {missing[:5]} and has {more[:5]} outside of {content.start} to {content.end}"
                yield Violation(Kind.GAP, f"{named} {text}.")
        other = first.setdefault((content.isolation, place), content)
        if other.records != content.records:
            text = f"has {len(content.records)} records, and {len(other.records)} from {other.source}"
            yield Violation(Kind.CHANGED, f"{named} {text}, or they differ.")
    committed, uncommitted = index.final(COMMITTED), index.final(UNCOMMITTED)
    for place in committed.keys() & uncommitted.keys():
        for offset, value in sorted(set(committed[place]) - set(uncommitted[place]))[:5]:
            text = f"{value} at {offset} of {place[0]}-{place[1]} is read with {COMMITTED} only."
            yield Violation(Kind.CHANGED, text)


def _isolation(index: Index) -> Iterator[Violation]:
    """Nobody reads what was aborted, or what nobody has asked to commit yet."""
    written = {one.value: attempt for attempt in index.attempts for one in attempt.appends}
    seen_by = ((seen.reader, seen.at, read) for seen in index.seen for read in _reads(seen))
    given_to = ((one.member, one.at, read) for one in index.deliveries for read in _reads(one))
    read_by = ((attempt.writer, attempt.at, read) for attempt in index.attempts for read in attempt.reads)
    for who, at, read in chain(seen_by, given_to, read_by):
        attempt = written.get(read.value)
        if attempt is None:
            continue
        text = f"{who} had read {read.value} at {read.offset} of {read.topic}-{read.partition} by {at:.3f} s"
        if attempt.outcome is Outcome.ABORTED:
            yield Violation(Kind.ABORTED_READ, f"{text}, which was aborted.")
        elif attempt.commit_at is not None and at < attempt.commit_at:
            text = f"{text}; {attempt.writer} asked to commit it at {attempt.commit_at:.3f} s."
            yield Violation(Kind.EARLY_READ, text)


def _sessions(index: Index) -> Iterator[Violation]:
    """A session sees every committed record from its start on, in order."""
    sessions: dict[tuple[str, int, int, Place], list[int]] = defaultdict(list)
    for seen in index.seen:
        place = (seen.topic, seen.partition)
        sessions[seen.reader, seen.session, seen.start, place] += [offset for offset, _ in seen.records]
    final = {place: [offset for offset, _ in records] for place, records in index.final(COMMITTED).items()}
    for (reader, _, start, place), offsets in sessions.items():
        yield from _session(f"{reader} in {place[0]}-{place[1]}", start, offsets, final.get(place, []))


def _session(who: str, start: int, offsets: Sequence[int], final: Sequence[int]) -> Iterator[Violation]:
    for earlier, later in pairwise([start - 1, *offsets]):
        if later <= earlier:
            yield Violation(Kind.REORDERED, f"{who} was given offset {later} after {earlier}.")
    given = set(offsets)
    upto = max(offsets, default=-1)
    skipped = [offset for offset in final[bisect_left(final, start) : bisect_right(final, upto)] if offset not in given]
    if skipped:
        yield Violation(Kind.LOST, f"{who} was not given {len(skipped)} committed records, from {skipped[0]} on.")


def _strangers(index: Index) -> Iterator[Violation]:
    """What is read was written, to this partition."""
    written = {(one.topic, one.partition, one.value) for attempt in index.attempts for one in attempt.appends}
    for place, records in index.final(UNCOMMITTED).items():
        for offset, value in records:
            if (*place, value) not in written and not value.startswith(TORN):
                yield Violation(Kind.INVENTED, f"Nobody wrote {value}, at {offset} of {place[0]}-{place[1]}.")
