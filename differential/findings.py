"""What a run has found: differences, what was different for a moment only, and what was asked at all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from differential.compare import Unequal
from differential.exchange import Answers, codes_of
from differential.places import Place
from differential.steps import Step
from strandline.wire.api import ApiKey

_LONGEST_HISTORY: Final = 40
_MOST_FIELDS: Final = 12


@dataclass(frozen=True, slots=True)
class Difference:
    """One that stays when the request is repeated, or of a request that cannot be."""

    number: int
    """Of the step; steps of the preparation count."""
    request: str
    places: tuple[Place, ...]
    fields: Sequence[Unequal]
    before: Sequence[str]
    """The steps that have changed these partitions until then, the last ones of them."""
    left_out: int = 0
    """How many steps there were before those."""

    def lines(self) -> list[str]:
        """For a reader who wants to see it happen again."""
        told = [f"step {self.number}: {self.request}"]
        told += [f"    {one}" for one in self.fields[:_MOST_FIELDS]]
        if len(self.fields) > _MOST_FIELDS:
            told.append(f"    and {len(self.fields) - _MOST_FIELDS} more fields")
        if self.before or self.left_out:
            told.append(f"  after these changes of {', '.join(map(str, self.places))}:")
        if self.left_out:
            told.append(f"    ({self.left_out} earlier ones)")
        return told + [f"    {one}" for one in self.before]

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.number,
            "request": self.request,
            "partitions": [str(place) for place in self.places],
            "fields": [{"path": one.path, "old": one.old, "new": one.new} for one in self.fields],
            "before": [*self.before],
            "left_out": self.left_out,
        }


@dataclass(slots=True)
class Findings:
    """Of one run."""

    differences: list[Difference] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    """Differences that were gone when the request was repeated, in a line each."""
    repeated: Counter[str] = field(default_factory=Counter)
    """Differences like one that was told already, by what they have in common."""
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By API and error; an answer with several errors counts for each."""
    batches: Counter[str] = field(default_factory=Counter)
    """How many were read of each kind of partition."""
    left_alone: set[Place] = field(default_factory=set)
    """Partitions that are not in the same state any more."""
    steps: int = 0
    _changes: defaultdict[Place, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    def begin(self, step: Step) -> int:
        """The number of a step, which is remembered if it changes something."""
        self.steps += 1
        self.note(step.changes, str(step))
        return self.steps

    def note(self, places: Sequence[Place], what: str) -> None:
        """Remember something that was done to partitions."""
        for place in places:
            self._changes[place].append((self.steps, what))

    def count(self, step: Step, answers: Answers) -> None:
        for code in codes_of(answers.new.message) or {0}:
            self.answers[step.api.name, code] += 1
        plain = answers.new.plain
        if step.api is ApiKey.FETCH and isinstance(plain, dict):
            for key, one in plain["responses"].items():
                self.batches[Place(key, 0).kind] += len(one["records"] or ())

    def pass_by(self, number: int, step: Step, fields: Sequence[Unequal]) -> None:
        """It was different once, and then no more."""
        self.passing.append(f"step {number}: {step}: {'; '.join(map(str, fields[:3]))}")

    def add(self, number: int, request: str, places: Sequence[Place], fields: Sequence[Unequal]) -> None:
        """A difference that stays. One like an earlier one is only counted."""
        likeness = self._likeness(request, places, fields)
        self.repeated[likeness] += 1
        if self.repeated[likeness] > 1:
            return
        found = sorted({entry for place in places for entry in self._changes[place] if entry[0] < number})
        before = [f"step {at}: {what}" for at, what in found[-_LONGEST_HISTORY:]]
        left_out = len(found) - len(before)
        self.differences.append(Difference(number, request, tuple(places), [*fields], before, left_out))

    @staticmethod
    def _likeness(request: str, places: Sequence[Place], fields: Sequence[Unequal]) -> str:
        kinds = ",".join(sorted({place.kind for place in places}))
        shapes = sorted({f"{one.field}: {_shape(one.old)} {_shape(one.new)}" for one in fields})
        return f"{request.split(maxsplit=1)[0]} of {kinds}: {'; '.join(shapes[:3])}"


def _shape(value: Any) -> str:
    """An error code matters, an offset does not."""
    return str(value) if isinstance(value, bool) or (isinstance(value, int) and -1 <= value < 120) else ""
