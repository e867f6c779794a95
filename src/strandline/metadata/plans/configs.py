"""Plans for changes of settings of topics and brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from strandline.errors import InvalidConfig, InvalidRequest, StrandlineError
from strandline.metadata.image import ConfigResource, MetadataImage
from strandline.metadata.plans.diskless_switch import with_diskless_flag
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import ConfigRecord, MetadataRecord
from strandline.metadata.requests import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    Plan,
)

W = TypeVar("W", ConfigAlteration, ConfigReplacement)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPlanner:
    """Plans changes of settings. All changes of one resource are made, or none of them."""

    rules: ConfigRules

    def alter(self, image: MetadataImage, wishes: Sequence[ConfigAlteration]) -> Plan[list[StrandlineError | None]]:
        """Apply operations. The answer is None for a resource that was changed."""
        return self._plan(image, wishes, self._altered)

    def replace(self, image: MetadataImage, wishes: Sequence[ConfigReplacement]) -> Plan[list[StrandlineError | None]]:
        """Give resources exactly these settings. The answer is None for a resource that was changed."""
        return self._plan(image, wishes, _replaced)

    def _plan(
        self, image: MetadataImage, wishes: Sequence[W], wanted: Callable[[Mapping[str, str], W], dict[str, str]]
    ) -> Plan[list[StrandlineError | None]]:
        times = Counter(wish.resource for wish in wishes)
        records: list[MetadataRecord] = []
        answers: list[StrandlineError | None] = []
        for wish in wishes:
            try:
                if times[wish.resource] > 1:
                    raise InvalidRequest("Each resource must appear at most once.")
                self.rules.check_exists(image, wish.resource)
                before = image.overrides(wish.resource)
                after = wanted(before, wish)
                self.rules.validate(image, wish.resource, after)
            except StrandlineError as error:
                answers.append(error)
            else:
                records += _difference(wish.resource, before, after)
                answers.append(None)
        return Plan(records, answers)

    def _altered(self, before: Mapping[str, str], wish: ConfigAlteration) -> dict[str, str]:
        if len({change.key for change in wish.changes}) != len(wish.changes):
            raise InvalidRequest("Error due to duplicate config keys")
        after = dict(before)
        for change in wish.changes:
            self._apply(wish.resource, after, change)
        return after

    def _apply(self, resource: ConfigResource, values: dict[str, str], change: ConfigChange) -> None:
        if change.operation is ConfigOperation.DELETE:
            values.pop(change.key, None)
            return
        if change.value is None:
            raise InvalidRequest(f"Null value not supported for : {change.operation.name} {change.key}")
        if change.operation is ConfigOperation.SET:
            values[change.key] = change.value
            return
        default = self.rules.list_default(resource, change.key)
        parts = _parts(values.get(change.key, default))
        given = _parts(change.value)
        if change.operation is ConfigOperation.APPEND:
            parts += [part for part in given if part not in parts]
        else:
            parts = [part for part in parts if part not in given]
        values[change.key] = ",".join(parts)


def _replaced(before: Mapping[str, str], wish: ConfigReplacement) -> dict[str, str]:
    missing = sorted(key for key, value in wish.values.items() if value is None)
    if missing:
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(missing)}")
    return with_diskless_flag(before, {key: value for key, value in wish.values.items() if value is not None})


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _difference(resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str]) -> list[ConfigRecord]:
    return [
        ConfigRecord(resource=resource, key=key, value=after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
