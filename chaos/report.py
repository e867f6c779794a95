"""What a history says, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaos.history import Attempt, Delivery, Ended, Event, Fault, Outcome, Promise, Run, Seen
from chaos.intents import with_lost
from chaos.progress import Pause, longest_pauses
from chaos.verify import verify
from chaos.violations import Violation

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts and violations."""

    run: Run | None
    operations: dict[Promise, dict[Outcome, int]]
    """Transactions, and single records of producers without them."""
    errors: dict[tuple[Promise, Outcome, str], int]
    """Why they were not committed; those that were aborted on purpose have no error."""
    appended: int
    read: int
    faults: dict[str, int]
    ended: Sequence[Ended]
    violations: Sequence[Violation]
    pauses: Sequence[Pause] = ()
    delivered: int = 0
    """To members of groups."""

    def to_json(self) -> dict[str, Any]:
        return {
            "run": None if self.run is None else asdict(self.run),
            "operations": self.operations,
            "errors": [
                {"promise": promise, "outcome": outcome, "error": error, "count": count}
                for (promise, outcome, error), count in sorted(self.errors.items())
            ],
            "records_appended": self.appended,
            "records_read": self.read,
            "records_delivered": self.delivered,
            "faults": self.faults,
            "ended": [
                {"writer": one.writer, "operation": one.operation, "error": one.error, "after": one.after}
                for one in self.ended
            ],
            "pauses": [asdict(one) for one in self.pauses],
            "violations": [{"kind": one.kind.value, "text": one.text} for one in self.violations],
        }

    def lines(self) -> list[str]:
        """For people."""
        named = {Promise.TRANSACTIONAL: "transactions"}
        lines = [
            f"{named.get(promise, f'{promise} records')}: {_counts(outcomes)}"
            for promise, outcomes in self.operations.items()
        ]
        for (promise, outcome, error), count in sorted(self.errors.items()):
            lines.append(f"  {promise}, {outcome} after {error}: {count}")
        lines.append(f"records: {self.appended} appended, {self.read} read, {self.delivered} given to groups")
        lines.append(f"faults: {sum(self.faults.values())} ({_counts(self.faults)})")
        for pause in self.pauses:
            where = f"{pause.topic}-{pause.partition} at {pause.begin:.1f} s"
            during = f" ({', '.join(pause.faults)})" if pause.faults else ""
            lines.append(f"longest pause of acknowledgements: {pause.seconds:.1f} s in {where}{during}")
        ended = Counter((one.operation, one.error, one.is_fatal) for one in self.ended)
        for (operation, error, is_fatal), count in sorted(ended.items()):
            lines.append(f"clients replaced after {operation}, {error}{' (fatal)' if is_fatal else ''}: {count}")
        kinds = Counter(one.kind.value for one in self.violations)
        lines += [f"{one.kind}: {one.text}" for one in self.violations[:_SHOWN]]
        if len(self.violations) > _SHOWN:
            lines.append(f"... and {len(self.violations) - _SHOWN} more")
        lines.append(f"violations: {len(self.violations)}" + (f" ({_counts(kinds)})" if kinds else ""))
        return lines


def report_of(events: Iterable[Event]) -> Report:
    """Judge a history."""
    known = list(events)
    attempts = [one for one in with_lost(known) if isinstance(one, Attempt)]
    operations: dict[Promise, dict[Outcome, int]] = {
        promise: {outcome: 0 for outcome in Outcome} for promise in Promise
    }
    for attempt in attempts:
        operations[attempt.promise][attempt.outcome] += 1
    seen = sum(len(one.records) for one in known if isinstance(one, Seen))
    return Report(
        run=next((one for one in known if isinstance(one, Run)), None),
        operations=operations,
        errors=dict(Counter((one.promise, one.outcome, one.error) for one in attempts if one.error is not None)),
        appended=sum(len(one.appends) for one in attempts),
        read=seen + sum(len(one.reads) for one in attempts),
        faults=dict(Counter(one.kind for one in known if isinstance(one, Fault))),
        ended=[one for one in known if isinstance(one, Ended)],
        violations=verify(known),
        pauses=longest_pauses(known),
        delivered=sum(len(one.records) for one in known if isinstance(one, Delivery)),
    )


def _counts(counts: dict[str, int] | dict[Outcome, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
