"""Plans for changes of settings of topics, brokers and subscriptions to metrics of clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from strandline.config import TopicConfig
from strandline.config.migration_state import MIGRATION_STATE
from strandline.config.names import unknown_name
from strandline.errors import InvalidRequest, RequestTimedOut, StrandlineError
from strandline.metadata.config_map import ConfigEditor, ConfigMap
from strandline.metadata.effects import DISKLESS_FLAG, CheckUncleanDefault, Effect
from strandline.metadata.image import ConfigResource, ConfigResourceType, MetadataImage, TopicImage
from strandline.metadata.plans.diskless_switch import (
    CheckedTopic,
    Switch,
    check_start,
    check_unchanged,
    switch_of,
    with_kept_flags,
)
from strandline.metadata.plans.elections import grouped, without_eligible
from strandline.metadata.plans.rules import MIN_INSYNC_REPLICAS, ConfigRules
from strandline.metadata.plans.switch_requests import topic_effects
from strandline.metadata.records import ConfigRecord, PartitionChangeRecord
from strandline.metadata.requests import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    Plan,
)
from strandline.metadata.topic_map import indexed_topics

ConfigWish: TypeAlias = ConfigAlteration | ConfigReplacement


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTransition:
    """The settings of one resource before and after a change, and those that the request names."""

    resource: ConfigResource
    before: Mapping[str, str]
    after: Mapping[str, str]
    named: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPlanner:
    """Plans changes of settings. All changes of one resource are made, or none of them."""

    rules: ConfigRules

    def plan(self, image: MetadataImage, wishes: Sequence[ConfigWish]) -> Plan[list[StrandlineError | None]]:
        """Change several resources, none of which `needs_control_plane`. The answer is None for a change."""
        times = Counter(wish.resource for wish in wishes)
        records: list[ConfigRecord] = []
        answers: list[StrandlineError | None] = []
        for wish in wishes:
            try:
                if times[wish.resource] > 1:
                    raise InvalidRequest("Each resource must appear at most once.")
                change = self._transition(image, wish)
                if self._effects(image, change):
                    raise RequestTimedOut(f"{change.resource.name} was changed at the same time. Try again.")
                self.rules.validate(image, change.resource, change.after)
            except StrandlineError as error:
                answers.append(error)
            else:
                records += _difference(change)
                answers.append(None)
        return Plan([*records, *self._eligible_after(image, records)], answers)

    def _eligible_after(self, image: MetadataImage, records: Sequence[ConfigRecord]) -> list[PartitionChangeRecord]:
        """Where min.insync.replicas changes, replicas may cease to be eligible leaders."""
        changed = [record for record in records if record.key == MIN_INSYNC_REPLICAS]
        if not changed:
            return []
        topics, after = indexed_topics(image), _with(image, changed)
        names = {record.resource.name for record in changed if record.resource.type is ConfigResourceType.TOPIC}
        is_for_all = any(record.resource.type is ConfigResourceType.BROKER for record in changed)
        changes = (
            without_eligible(topic.topic_id, one, self.rules.committed_by(after, topic.name, one))
            for topic in topics.named(topics.with_eligible if is_for_all else names)
            for one in topic.partitions
        )
        return grouped(filter(None, changes))

    # Changes that the control plane takes part in

    def needs_control_plane(self, image: MetadataImage, wish: ConfigWish) -> bool:
        """True if the change is to be made alone, by `plan_together`."""
        try:
            return bool(self._effects(image, self._transition(image, wish)))
        except StrandlineError:
            return False  # it is refused, with or without the control plane

    def topic_to_check(self, image: MetadataImage, wish: ConfigWish) -> tuple[TopicImage, TopicConfig] | None:
        """The topic that is to become diskless, and its settings then; None if the wish is another one.

        Raises the refusal of the change, as far as the metadata knows.
        """
        change = self._transition(image, wish)
        if self._switch(image, change) is not Switch.START:
            return None
        topic, after = image.topics[change.resource.name], self.rules.settings(image).topic_config(change.after)
        check_start(topic, after, self.rules.settings(image))
        return topic, after

    def plan_together(self, image: MetadataImage, wish: ConfigWish, checked: CheckedTopic | None) -> Plan[None]:
        """Change one resource, and the control plane with it. Raises the refusal.

        `checked` is the topic that was checked for becoming diskless, if the wish is about that.
        """
        found = self.topic_to_check(image, wish)
        if found is not None:
            check_unchanged(*found, checked)
        change = self._transition(image, wish)
        self.rules.validate(image, change.resource, change.after)
        records = _difference(change)
        return Plan([*records, *self._eligible_after(image, records)], None, self._effects(image, change))

    def _effects(self, image: MetadataImage, change: ConfigTransition) -> Sequence[Effect]:
        if change.resource.type not in (ConfigResourceType.TOPIC, ConfigResourceType.BROKER):
            return ()
        if change.resource.type is ConfigResourceType.BROKER:
            is_unclean = self.rules.makes_unclean_default(image, change.resource, change.after)
            return (CheckUncleanDefault(image),) if is_unclean else ()
        settings, topic = self.rules.settings(image), image.topics[change.resource.name]
        before, after = settings.topic_config(change.before), settings.topic_config(change.after)
        obstacle = None
        try:
            check_start(topic, after, settings)
        except StrandlineError as error:
            obstacle = error
        return topic_effects(topic, self._switch(image, change), before, after, obstacle=obstacle)

    def _switch(self, image: MetadataImage, change: ConfigTransition) -> Switch:
        if change.resource.type is not ConfigResourceType.TOPIC:
            return Switch.NONE
        settings = self.rules.settings(image)
        before, after = settings.topic_config(change.before), settings.topic_config(change.after)
        return switch_of(before, after, is_named=DISKLESS_FLAG in change.named)

    # What is asked for

    def _transition(self, image: MetadataImage, wish: ConfigWish) -> ConfigTransition:
        self.rules.check_exists(image, wish.resource)
        before = image.overrides(wish.resource)
        if isinstance(wish, ConfigReplacement):
            return ConfigTransition(
                resource=wish.resource, before=before, after=_replaced(before, wish), named=wish.values.keys()
            )
        named = {change.key for change in wish.changes}
        return ConfigTransition(resource=wish.resource, before=before, after=self._altered(before, wish), named=named)

    def _altered(self, before: Mapping[str, str], wish: ConfigAlteration) -> dict[str, str]:
        if len({change.key for change in wish.changes}) != len(wish.changes):
            raise InvalidRequest("Error due to duplicate config keys")
        after = dict(before)
        for change in wish.changes:
            if change.key == MIGRATION_STATE.name:  # also where it would only be removed
                raise unknown_name(change.key, (), what="a topic setting")
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


def _with(image: MetadataImage, records: Iterable[ConfigRecord]) -> MetadataImage:
    """The image with other settings, for asking what they would mean."""
    changed: dict[ConfigResource, dict[str, str]] = {}
    for record in records:
        overrides = changed.setdefault(record.resource, dict(image.overrides(record.resource)))
        if record.value is None:
            overrides.pop(record.key, None)
        else:
            overrides[record.key] = record.value
    editor = ConfigEditor(ConfigMap.of(image.configs))
    for resource, values in changed.items():
        editor.put(resource, values)
    return replace(image, configs=editor.build())


def _replaced(before: Mapping[str, str], wish: ConfigReplacement) -> dict[str, str]:
    missing = sorted(key for key, value in wish.values.items() if value is None)
    if missing:
        raise InvalidRequest(f"Null value not supported for : {','.join(missing)}")
    return with_kept_flags(before, {key: value for key, value in wish.values.items() if value is not None})


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _difference(change: ConfigTransition) -> list[ConfigRecord]:
    before, after = change.before, change.after
    return [
        ConfigRecord(resource=change.resource, key=key, value=after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
