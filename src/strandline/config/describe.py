"""The answers to `DescribeConfigs`: values with their sources, and synonyms in Kafka's order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from strandline.config.client_metrics import CLIENT_METRICS_DECLARATIONS
from strandline.config.declare import Declaration, Dynamic, SettingKind
from strandline.config.group import GROUP_DECLARATIONS, group_config
from strandline.config.settings import BROKER_DECLARATIONS, DATA_PLACES, Settings
from strandline.config.share_group import SHARE_GROUP_DECLARATIONS, share_group_config
from strandline.config.share_groups import SHARE_MEMBERSHIP_DECLARATIONS, share_membership
from strandline.config.topic import TOPIC_DECLARATIONS


class ConfigSource(IntEnum):
    """Where a value comes from, with Kafka's codes."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """A source that could give a setting its value, and the value it gives."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One described setting. `value` is None if it is not set, or must not be shown."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    is_sensitive: bool
    kind: SettingKind
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]


_ROLL: Final = ("log.roll.ms", "log.roll.hours")
_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
# Settings with the same meaning in different units, in order of precedence.
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_JITTER, _JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
    # As in Kafka, the scheduler's own entry does not name the setting that it is the default of.
    "log.flush.interval.ms": _FLUSH,
}


def describe_topic(
    settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The settings of a topic, by name; all of them, or those of `names` that exist."""
    config = settings.topic_config(overrides)
    entries = []
    for declaration in _chosen(TOPIC_DECLARATIONS, names, overrides):
        text = declaration.text_of(getattr(config, declaration.attribute))
        synonyms = _inherited_synonyms(settings, declaration)
        if declaration.name in overrides:
            own = ConfigSynonym(name=declaration.name, value=text, source=ConfigSource.DYNAMIC_TOPIC_CONFIG)
            synonyms = (own, *synonyms)
        entries.append(_entry(declaration, text, synonyms, read_only=False))
    return entries


def describe_client_metrics(overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The settings of a subscription to metrics of clients, by name."""
    entries = []
    for declaration in _chosen(CLIENT_METRICS_DECLARATIONS, names, overrides):
        given = overrides.get(declaration.name)
        text = declaration.text_of(declaration.default if given is None else declaration.parse(given))
        own = ConfigSynonym(name=declaration.name, value=text, source=ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG)
        # As in Kafka a default is not among the synonyms.
        entries.append(_entry(declaration, text, () if given is None else (own,), read_only=False))
    return entries


def describe_group(
    settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The settings of a group, by name; all of them, or those of `names` that exist."""
    own_config = group_config(overrides, settings.groups)
    shared_config = share_membership(overrides, settings.share_groups)
    delivery = share_group_config(overrides, settings.sharing)
    entries = []
    for declaration in _chosen({**GROUP_DECLARATIONS, **SHARE_GROUP_DECLARATIONS}, names, overrides):
        config: object = own_config
        if declaration.name in SHARE_MEMBERSHIP_DECLARATIONS:
            config = shared_config
        elif declaration.name in SHARE_GROUP_DECLARATIONS:
            config = delivery
        text = declaration.text_of(getattr(config, declaration.attribute))
        synonyms = _inherited_synonyms(settings, declaration)
        if declaration.name in overrides:
            own = ConfigSynonym(name=declaration.name, value=text, source=ConfigSource.DYNAMIC_GROUP_CONFIG)
            synonyms = (own, *synonyms)
        entries.append(_entry(declaration, text, synonyms, read_only=False))
    return entries


def _inherited_synonyms(settings: Settings, declaration: Declaration) -> tuple[ConfigSynonym, ...]:
    """What holds for a group that sets nothing itself: the broker's setting, or a default that only groups have."""
    if declaration.broker_name is not None:
        return _broker_synonyms(settings, declaration.broker_name)
    default = declaration.text_of(declaration.default)
    return (ConfigSynonym(name=declaration.name, value=default, source=ConfigSource.DEFAULT_CONFIG),)


def describe_broker(settings: Settings, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The settings of a broker, by name; all of them, or those of `names` that exist."""
    given = {**settings.static, **settings.cluster_default, **settings.per_broker}
    return [
        _entry(
            declaration,
            declaration.text_of(settings.value(declaration.name)),
            _broker_synonyms(settings, declaration.name),
            read_only=declaration.dynamic is Dynamic.READ_ONLY,
        )
        for declaration in _chosen(BROKER_DECLARATIONS, names, given)
    ]


def describe_cluster_default(settings: Settings, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The dynamic settings that hold for all brokers: only those that are set."""
    entries = []
    for declaration in _chosen(BROKER_DECLARATIONS, names, settings.cluster_default):
        if declaration.name not in settings.cluster_default:
            continue
        synonyms = [
            synonym
            for synonym in _broker_synonyms(settings, declaration.name)
            if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        ]
        entries.append(_entry(declaration, settings.cluster_default[declaration.name], synonyms, read_only=False))
    return entries


def _chosen(
    declared: Mapping[str, Declaration], names: Collection[str] | None, given: Mapping[str, str]
) -> Iterator[Declaration]:
    """Declarations to show, by name. Internal ones are shown only if they are set."""
    for name in sorted(declared):
        if (names is None or name in names) and (not declared[name].is_internal or name in given):
            yield declared[name]


def _entry(
    declaration: Declaration, text: str | None, synonyms: Sequence[ConfigSynonym], *, read_only: bool
) -> ConfigEntry:
    return ConfigEntry(
        name=declaration.name,
        value=None if declaration.is_sensitive else text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only=read_only,
        is_sensitive=declaration.is_sensitive,
        kind=declaration.kind,
        documentation=declaration.documentation,
        synonyms=tuple(synonyms),
    )


def _broker_synonyms(settings: Settings, name: str) -> tuple[ConfigSynonym, ...]:
    found = settings.synonyms.get(name)
    if found is None:
        found = settings.synonyms[name] = tuple(_find_broker_synonyms(settings, name))
    return found


def _find_broker_synonyms(settings: Settings, name: str) -> list[ConfigSynonym]:
    """The sources that could give the broker setting `name` its value, the one in force first.

    The order is Kafka's: by source, and within a source by precedence of the names. Synonyms before the
    first that bears the name itself are left out, as Kafka does; so a setting whose value comes from
    another unit only (log.retention.hours for log.retention.ms) has none.
    """
    family = _FAMILIES.get(name, (name,))
    sources: tuple[tuple[ConfigSource, Mapping[str, str]], ...] = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, settings.per_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, settings.cluster_default),
        (ConfigSource.STATIC_BROKER_CONFIG, {**_placed(settings, family), **settings.static}),
        (ConfigSource.DEFAULT_CONFIG, _defaults(settings, family)),
    )
    found = [
        ConfigSynonym(
            name=member,
            value=None if BROKER_DECLARATIONS[member].is_sensitive else values[member],
            source=source,
        )
        for source, values in sources
        for member in family
        if member in values
    ]
    start = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[start:]


def _placed(settings: Settings, names: Sequence[str]) -> dict[str, str]:
    """The places that strandline.data.dir stands for, if the broker was started with one."""
    if "strandline.data.dir" not in settings.static:
        return {}
    found = {name: BROKER_DECLARATIONS[name].text_of(settings.value(name)) for name in names if name in DATA_PLACES}
    return {name: text for name, text in found.items() if text is not None}


def _defaults(settings: Settings, names: Sequence[str]) -> dict[str, str]:
    defaults: dict[str, str] = {}
    for name in names:
        declaration = BROKER_DECLARATIONS[name]
        is_given = name in settings.static or name in settings.cluster_default or name in settings.per_broker
        # Paths below the data directory have a default that depends on it: the value in force.
        text = declaration.text_of(declaration.default if is_given else settings.value(name))
        if text is not None:
            defaults[name] = text
    return defaults
