"""Judges what was begun and never recorded: a client was killed in between, and cannot say what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chaos.history import NO_RETURN, Append, Attempt, Begun, Ended, Event, Outcome, Promise
from chaos.violations import Kind, Violation

CLIENT_LOST = "the loss of its client"
"""The error of what a client had begun when it was killed."""
_COMMIT_WAS_ASKED_FOR = ("commit_transaction", "abort_transaction")
"""Steps in which a client may have asked to commit: it aborts, too, after a commit that was refused."""


def with_lost(events: Iterable[Event]) -> list[Event]:
    """The history with an attempt for each that was begun and has no record, where it was begun.

    A transaction is there as a whole or not at all, also then, and not at all if nobody had asked to commit it yet. Of
    single records each may be there or not.
    """
    known = list(events)
    recorded, ends = _recorded(known), _ends(known)
    found: list[Event] = []
    for number, event in enumerate(known):
        if isinstance(event, Begun):
            found += _lost(event, recorded, ends.get(number))
        else:
            found.append(event)
    return found


def check_intents(events: Sequence[Event]) -> Iterator[Violation]:
    """Only a client that was killed afterwards cannot say what became of it: all others have to."""
    recorded, ends = _recorded(events), _ends(events)
    for number, event in enumerate(events):
        if isinstance(event, Begun) and number not in ends and _left(event, recorded):
            text = f"{event.writer} has begun to write {event.appends[0].value} at {event.at:.1f} s"
            yield Violation(Kind.NOT_READ, f"{text}, was not killed, and did not record what became of it.")


def _recorded(events: Iterable[Event]) -> set[str]:
    return {one.value for event in events if isinstance(event, Attempt) for one in event.appends}


def _left(begun: Begun, recorded: set[str]) -> list[Append]:
    return [one for one in begun.appends if one.value not in recorded]


def _ends(events: Sequence[Event]) -> Mapping[int, Ended]:
    """For what was begun, by its place in the history, the end of the process that did it, if it was killed."""
    ends: dict[int, Ended] = {}
    last: dict[str, Ended] = {}
    for number, event in reversed([*enumerate(events)]):
        if isinstance(event, Ended) and event.error == NO_RETURN:
            last[event.writer] = event
        elif isinstance(event, Begun) and event.client in last:
            ends[number] = last[event.client]
    return ends


def _lost(begun: Begun, recorded: set[str], end: Ended | None) -> Iterator[Attempt]:
    left = _left(begun, recorded)
    if not left:
        return
    is_transaction = begun.promise is Promise.TRANSACTIONAL
    is_aborted = is_transaction and end is not None and end.operation not in _COMMIT_WAS_ASKED_FOR
    for appends in [left] if is_transaction else [[one] for one in left]:
        yield Attempt(
            at=begun.at,
            writer=begun.writer,
            promise=begun.promise,
            outcome=Outcome.ABORTED if is_aborted else Outcome.UNKNOWN,
            appends=appends,
            reads=begun.reads,
            error=CLIENT_LOST,
        )
