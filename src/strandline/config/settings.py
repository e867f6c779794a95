"""All settings of a broker: the areas, where each value comes from, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from strandline.config.admin import AdminSettings
from strandline.config.cluster import ClusterSettings
from strandline.config.conversion import TieringSettings
from strandline.config.declare import Declaration, Value, declarations_of, parse_area
from strandline.config.diskless import DisklessSettings
from strandline.config.groups import GroupSettings
from strandline.config.log import LogSettings
from strandline.config.names import IGNORED, unknown_name
from strandline.config.network import NetworkSettings
from strandline.config.passed_on import handed_on, is_handed_on, under_declared_names
from strandline.config.remote import METADATA_PREFIX, STORAGE_PREFIX, TierSettings
from strandline.config.replication import ReplicationSettings
from strandline.config.share_groups import ShareGroupSettings
from strandline.config.sharing import ShareSettings
from strandline.config.topic import TopicConfig, topic_values
from strandline.config.transactions import TransactionSettings
from strandline.errors import InvalidConfig

if TYPE_CHECKING:
    from strandline.config.describe import ConfigSynonym

AREAS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "cluster": ClusterSettings,
        "network": NetworkSettings,
        "log": LogSettings,
        "replication": ReplicationSettings,
        "groups": GroupSettings,
        "share_groups": ShareGroupSettings,
        "sharing": ShareSettings,
        "transactions": TransactionSettings,
        "diskless": DisklessSettings,
        "tiers": TierSettings,
        "tiering": TieringSettings,
        "admin": AdminSettings,
    }
)
BROKER_DECLARATIONS: Final[Mapping[str, Declaration]] = MappingProxyType(
    {name: declaration for area in AREAS.values() for name, declaration in declarations_of(area).items()}
)
_AREA_OF: Final[Mapping[str, str]] = {name: key for key, area in AREAS.items() for name in declarations_of(area)}
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_CACHED_TOPIC_CONFIGS: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of one broker. A value; a change gives a new one.

    `static` is what the broker was started with, `cluster_default` and `per_broker` what was changed since
    through the Kafka API. A later one wins: default, static, cluster default, per broker.
    """

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    log: LogSettings = field(default_factory=LogSettings)
    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    groups: GroupSettings = field(default_factory=GroupSettings)
    share_groups: ShareGroupSettings = field(default_factory=ShareGroupSettings)
    sharing: ShareSettings = field(default_factory=ShareSettings)
    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    diskless: DisklessSettings = field(default_factory=DisklessSettings)
    tiers: TierSettings = field(default_factory=TierSettings)
    tiering: TieringSettings = field(default_factory=TieringSettings)
    admin: AdminSettings = field(default_factory=AdminSettings)
    static: Mapping[str, str] = field(default_factory=dict)
    cluster_default: Mapping[str, str] = field(default_factory=dict)
    per_broker: Mapping[str, str] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()
    synonyms: dict[str, tuple[ConfigSynonym, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """A cache of `config.describe`: synonyms depend only on these settings."""
    _topic_configs: dict[frozenset[tuple[str, str]], TopicConfig] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Settings:
        """Settings of a broker started with `properties`.

        Raises InvalidConfig, in one sentence, for an unknown name (with the nearest known one), a value
        outside its legal range (with the range), or settings that contradict each other.
        """
        for name in properties:
            if name not in BROKER_DECLARATIONS and name not in IGNORED and not is_handed_on(name, properties):
                raise unknown_name(name, BROKER_DECLARATIONS, what="a setting of the broker")
        return _build(properties, _NOTHING, _NOTHING)

    def with_dynamic(self, cluster_default: Mapping[str, str], per_broker: Mapping[str, str]) -> Settings:
        """These settings with other dynamic ones, which replace the dynamic ones so far.

        The dynamic values were validated when they were set. One that is not legal now (set by another
        version) does not stop the broker: it is left out, and `rejected` has a sentence with the reason.
        """
        rejected: list[str] = []
        default = _legal_only(cluster_default, rejected)
        own = _legal_only(per_broker, rejected)
        try:
            return replace(_build(self.static, default, own), rejected=tuple(rejected))
        except InvalidConfig as error:
            rejected.append(f"All dynamic broker settings are left out: {error}")
            return replace(_build(self.static, _NOTHING, _NOTHING), rejected=tuple(rejected))

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings in force for a topic with these overrides. Topics with equal overrides share one value.

        Raises InvalidConfig for an illegal value; unknown names are left out.
        """
        key = frozenset(overrides.items())
        found = self._topic_configs.get(key)
        if found is None:
            arguments: dict[str, Any] = dict(topic_values(overrides, self.log))
            found = TopicConfig(**arguments)
            if len(self._topic_configs) >= _CACHED_TOPIC_CONFIGS:
                self._topic_configs.clear()
            self._topic_configs[key] = found
        return found

    def value(self, name: str) -> Value:
        """The value in force of the broker setting `name`. Raises InvalidConfig if there is none of that name."""
        if name not in _AREA_OF:
            raise unknown_name(name, BROKER_DECLARATIONS, what="a setting of the broker")
        value: Value = getattr(getattr(self, _AREA_OF[name]), BROKER_DECLARATIONS[name].attribute)
        return value

    @property
    def rsm_config(self) -> Mapping[str, str]:
        """The settings for the RemoteStorageManager: `rsm.config.*` without the prefix, defaults included."""
        return self._handed_on(STORAGE_PREFIX, self.tiers.remote_log_storage_manager_impl_prefix)

    @property
    def rlmm_config(self) -> Mapping[str, str]:
        """The settings for the RemoteLogMetadataManager: `rlmm.config.*` without the prefix, defaults included."""
        return self._handed_on(METADATA_PREFIX, self.tiers.remote_log_metadata_manager_impl_prefix)

    def _handed_on(self, declared_prefix: str, prefix: str) -> Mapping[str, str]:
        declared = handed_on(BROKER_DECLARATIONS, declared_prefix)
        values = {tail: declaration.text_of(self.value(declaration.name)) for tail, declaration in declared.items()}
        return {tail: text for tail, text in values.items() if text is not None} | handed_on(self.static, prefix)

    @property
    def ignored(self) -> Mapping[str, str]:
        """Settings that were given but have no effect, with the reason."""
        return {name: IGNORED[name] for name in self.static if name in IGNORED}


def _build(static: Mapping[str, str], cluster_default: Mapping[str, str], per_broker: Mapping[str, str]) -> Settings:
    effective = under_declared_names({**static, **cluster_default, **per_broker})
    arguments = {key: parse_area(area, effective) for key, area in AREAS.items()}
    _place_data(arguments)
    areas: dict[str, Any] = {key: AREAS[key](**arguments[key]) for key in AREAS}
    for area in areas.values():
        if hasattr(area, "check"):
            area.check()
    return Settings(
        **areas,
        static=MappingProxyType(dict(static)),
        cluster_default=MappingProxyType(dict(cluster_default)),
        per_broker=MappingProxyType(dict(per_broker)),
    )


DATA_PLACES: Final = frozenset({"log.dirs", "strandline.metadata.url", "strandline.objects.url", "rsm.config.url"})
"""Settings whose default is below strandline.data.dir: what `_place_data` sets."""


def _place_data(arguments: Mapping[str, dict[str, Value]]) -> None:
    """Put logs, metadata database, objects and remote segments below the data directory unless settings place them."""
    log, cluster, diskless, tiers = (arguments[key] for key in ("log", "cluster", "diskless", "tiers"))
    data = PurePath(str(cluster.get("strandline_data_dir", ClusterSettings().strandline_data_dir)))
    if "log_dirs" not in log:
        single = log.get("log_dir")
        log["log_dirs"] = (str(single),) if single else (str(data / "logs"),)
    cluster.setdefault("strandline_metadata_url", f"sqlite:///{data / 'metadata.db'}")
    diskless.setdefault(
        "strandline_objects_url", _store(diskless.get("inkless_storage_s3_bucket_name"), data / "objects")
    )
    bucket = tiers.get("rsm_config_inkless_storage_s3_bucket_name")
    tiers.setdefault("rsm_config_url", _store(bucket, data / "remote"))


def _store(bucket: Value, directory: PurePath) -> str:
    return f"s3://{bucket}" if bucket else f"file://{directory}"


def _legal_only(values: Mapping[str, str], rejected: list[str]) -> dict[str, str]:
    legal: dict[str, str] = {}
    for name, text in values.items():
        try:
            _declaration(name, BROKER_DECLARATIONS).parse(text)
        except InvalidConfig as error:
            rejected.append(str(error))
        else:
            legal[name] = text
    return legal


def _declaration(name: str, known: Mapping[str, Declaration]) -> Declaration:
    declaration = known.get(name)
    if declaration is None:
        raise unknown_name(name, known, what="a setting of the broker")
    return declaration
