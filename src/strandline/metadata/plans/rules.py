"""Validates settings for the controller, with the cluster-wide dynamic values of the image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.config import Settings, TopicConfig, validate_topic_overrides
from strandline.config.client_metrics import CLIENT_METRICS_DECLARATIONS, validate_client_metrics
from strandline.config.declare import Declaration, SettingKind
from strandline.config.group import GROUP_DECLARATIONS, validate_group_overrides
from strandline.config.rules import check_tiering_change, validate_broker_overrides
from strandline.config.settings import BROKER_DECLARATIONS
from strandline.config.share_group import SHARE_GROUP_DECLARATIONS, validate_share_group_overrides
from strandline.config.topic import TOPIC_DECLARATIONS
from strandline.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from strandline.metadata.config_map import configs_of
from strandline.metadata.effects import DISKLESS_FLAG, TIERING_FLAG
from strandline.metadata.features import may_replicate
from strandline.metadata.image import ConfigResource, ConfigResourceType, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.plans.diskless_switch import ALWAYS_LOCAL, check_history_stays
from strandline.metadata.records import ConfigRecord
from strandline.model import REMOTE_LOG_METADATA_TOPIC

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_ALL_BROKERS: Final = ConfigResource(ConfigResourceType.BROKER, "")
_DECLARATIONS: Final[Mapping[ConfigResourceType, Mapping[str, Declaration]]] = {
    ConfigResourceType.TOPIC: TOPIC_DECLARATIONS,
    ConfigResourceType.CLIENT_METRICS: CLIENT_METRICS_DECLARATIONS,
    ConfigResourceType.GROUP: {**GROUP_DECLARATIONS, **SHARE_GROUP_DECLARATIONS},
}


class ConfigRules:
    """Validates settings against `strandline.config`, and gives the settings in force for a topic."""

    def __init__(self, settings: Settings) -> None:
        self._static = settings
        self._settings = settings
        self._defaults: Mapping[str, str] | None = None

    def settings(self, image: MetadataImage) -> Settings:
        """The settings with the cluster-wide dynamic values of the image."""
        defaults = image.cluster_default_overrides()
        if defaults is not self._defaults:
            self._settings = self._static.with_dynamic(defaults, {}) if defaults else self._static
            self._defaults = defaults
        return self._settings

    def topic_config(self, image: MetadataImage, topic: str) -> TopicConfig:
        """The settings in force for a topic that exists."""
        return self.settings(image).topic_config(image.topic_overrides(topic))

    def allows_unclean_election(self, image: MetadataImage, topic: str) -> bool:
        """True if a replica that is not in sync may lead when no in-sync replica can."""
        return self.topic_config(image, topic).unclean_leader_election_enable

    def committed_by(self, image: MetadataImage, topic: str, partition: PartitionImage) -> int:
        """How many in-sync replicas commit a record of the partition; 0 if no eligible leaders are kept for it.

        None are kept where the level of the metadata does not know them, and for a partition whose only replica is in
        sync with itself, whatever becomes of it: there is no other one that could be preferred to it.

        Only what the metadata says of min.insync.replicas counts, and 1 if it says nothing: the files of brokers may
        differ, and a leader that commits with fewer replicas than this would leave eligible ones behind.
        """
        if not may_replicate(image) or (len(partition.replicas) == 1 and partition.isr == partition.replicas):
            return 0
        chosen = image.topic_overrides(topic).get(MIN_INSYNC_REPLICAS)
        if chosen is None:
            chosen = image.cluster_default_overrides().get(MIN_INSYNC_REPLICAS, "1")
        return min(int(chosen), len(partition.replicas))

    def replicated_defaults(self, image: MetadataImage) -> list[ConfigRecord]:
        """Settings that brokers must agree on once partitions have replicas, as Kafka records them for KIP-966.

        The file of this broker counts from now on for all of them, if it says anything. What was set for a single
        broker goes.
        """
        records = [
            ConfigRecord(resource=ConfigResource(ConfigResourceType.BROKER, name), key=MIN_INSYNC_REPLICAS, value=None)
            for name, overrides in configs_of(image, ConfigResourceType.BROKER).items()
            if name and MIN_INSYNC_REPLICAS in overrides
        ]
        least = self._static.log.min_insync_replicas
        if least != 1 and MIN_INSYNC_REPLICAS not in image.cluster_default_overrides():
            records.append(ConfigRecord(resource=_ALL_BROKERS, key=MIN_INSYNC_REPLICAS, value=str(least)))
        return records

    def new_topic_overrides(self, image: MetadataImage, topic: str, wanted: Mapping[str, str]) -> dict[str, str]:
        """The overrides of a topic that is created with `wanted`. Raises InvalidConfig if it may not have them.

        Whether it is diskless is stored with it: a later change of log.diskless.enable must not change the topic.
        """
        settings, overrides = self.settings(image), dict(wanted)
        validate_topic_overrides(overrides, settings)
        _check_local(topic, settings.topic_config(overrides))
        if topic not in ALWAYS_LOCAL and DISKLESS_FLAG not in overrides and settings.diskless.log_diskless_enable:
            config = settings.topic_config(overrides)
            if not config.is_compacted and not config.remote_storage_enable:
                overrides[DISKLESS_FLAG] = "true"
        return overrides

    def has_tiers(self, image: MetadataImage) -> bool:
        """True if topics may be tiered on this broker, or are tiered on other brokers."""
        is_enabled = self.settings(image).tiers.remote_log_storage_system_enable
        return is_enabled or any(self.topic_config(image, name).remote_storage_enable for name in image.topics)

    def is_diskless(self, image: MetadataImage, overrides: Mapping[str, str]) -> bool:
        """True if a topic with these overrides is diskless."""
        return self.settings(image).topic_config(overrides).diskless_enable

    def is_tiered(self, image: MetadataImage, overrides: Mapping[str, str]) -> bool:
        """True if a topic with these overrides is tiered."""
        return self.settings(image).topic_config(overrides).remote_storage_enable

    def validate(self, image: MetadataImage, resource: ConfigResource, overrides: Mapping[str, str]) -> None:
        """Raise an error if the resource may not have these overrides."""
        match resource.type:
            case ConfigResourceType.TOPIC:
                self._validate_topic(image, resource.name, overrides)
            case ConfigResourceType.BROKER:
                self._validate_broker(image, resource, overrides)
            case ConfigResourceType.CLIENT_METRICS:
                validate_client_metrics(resource.name, overrides)
            case ConfigResourceType.GROUP:
                self._validate_group(image, overrides)
            case _:
                raise InvalidRequest(f"The controller keeps no settings of type {resource.type.name}.")

    def _validate_topic(self, image: MetadataImage, topic: str, overrides: Mapping[str, str]) -> None:
        before, after = self.topic_config(image, topic), self.settings(image).topic_config(overrides)
        check_history_stays(topic, before, after)
        validate_topic_overrides(overrides, self.settings(image), may_be_switched=True)
        check_tiering_change(topic, before, after)
        _check_local(topic, after)
        if after.remote_storage_enable and not before.remote_storage_enable:
            _check_may_be_tiered(image.topics[topic])

    def _validate_broker(self, image: MetadataImage, resource: ConfigResource, overrides: Mapping[str, str]) -> None:
        if resource.name and MIN_INSYNC_REPLICAS in overrides and may_replicate(image):
            raise InvalidConfig(
                f"{MIN_INSYNC_REPLICAS} cannot differ between brokers: it says which replicas are eligible leaders. "
                "Set it for all brokers (--entity-default), or for topics."
            )
        own = {} if resource.name == "" else image.overrides(resource)
        settings = self._static.with_dynamic(image.cluster_default_overrides(), own)
        validate_broker_overrides(overrides, settings, is_cluster_default=resource.name == "")

    def _validate_group(self, image: MetadataImage, overrides: Mapping[str, str]) -> None:
        settings = self.settings(image)
        shared = {name: text for name, text in overrides.items() if name in SHARE_GROUP_DECLARATIONS}
        validate_share_group_overrides(shared, settings.sharing)
        others = {name: text for name, text in overrides.items() if name not in shared}
        validate_group_overrides(others, settings.groups, settings.share_groups)

    def makes_unclean_default(self, image: MetadataImage, resource: ConfigResource, after: Mapping[str, str]) -> bool:
        """True if unclean elections become the default of topics, with these overrides of a broker or of all."""
        if resource.type is not ConfigResourceType.BROKER:
            return False
        default, own = image.cluster_default_overrides(), image.overrides(resource)
        if resource.name == "":
            before, now = self._static.with_dynamic(own, {}), self._static.with_dynamic(after, {})
        else:
            before, now = self._static.with_dynamic(default, own), self._static.with_dynamic(default, after)
        return now.log.unclean_leader_election_enable and not before.log.unclean_leader_election_enable

    def check_exists(self, image: MetadataImage, resource: ConfigResource) -> None:
        """Raise the error for a resource that cannot have settings."""
        if resource.type is ConfigResourceType.TOPIC and resource.name not in image.topics:
            raise UnknownTopicOrPartition(f"The topic '{resource.name}' does not exist.")
        if resource.type is ConfigResourceType.BROKER and resource.name not in ("", *map(str, image.brokers)):
            raise InvalidRequest(f"No broker is registered with the id '{resource.name}'.")
        if resource.type is ConfigResourceType.GROUP and not resource.name:
            raise InvalidRequest("Settings of all groups are those of the brokers; name a group.")

    def list_default(self, resource: ConfigResource, key: str) -> str:
        """The default of a list setting, for APPEND and SUBTRACT. Raises InvalidConfig if it is not a list."""
        declaration = _DECLARATIONS.get(resource.type, BROKER_DECLARATIONS).get(key)
        if declaration is None or declaration.kind is not SettingKind.LIST:
            raise InvalidConfig(f"Can't append to or subtract from {key} because its type is not LIST.")
        return declaration.text_of(declaration.default) or ""


def _check_may_be_tiered(topic: TopicImage) -> None:
    """A tiered topic has one replica: followers cannot take over from remote storage yet."""
    most = max(len(partition.replicas) for partition in topic.partitions)
    if most > 1:
        raise InvalidConfig(
            f"{TIERING_FLAG} of {topic.name} cannot become true: it has {most} replicas, and a tiered topic has one in "
            "this version. Create a topic with one replica for it."
        )


def _check_local(topic: str, config: TopicConfig) -> None:
    if topic in ALWAYS_LOCAL and config.diskless_enable:
        raise InvalidConfig(f"{topic} is an internal topic; it cannot be diskless.")
    if topic in ALWAYS_LOCAL and config.remote_storage_enable:
        raise InvalidConfig(f"{topic} is an internal topic; it cannot be tiered.")
    if topic == REMOTE_LOG_METADATA_TOPIC and config.is_compacted:
        raise InvalidConfig(f"{topic} cannot be compacted: its records have no keys, and all of them are needed.")
