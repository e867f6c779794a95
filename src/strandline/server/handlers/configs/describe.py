"""DescribeConfigs, versions 1 to 4, and ListConfigResources, versions 0 and 1.

Resources: topics, this broker (by its id), all brokers (type BROKER, empty name: only what was set dynamically),
groups, and the loggers of this broker. A broker answers for itself only: another id gets INVALID_REQUEST, as in Kafka.
Topics have one setting that is not stored: `diskless.migration.state`, which is asked of the control plane for topics
that are diskless or become it, once for each request that wants it.

A subscription to metrics of clients is described with the defaults if it has no settings, as in Kafka. Groups have
settings whether or not they exist; only those whose settings were changed are listed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from strandline.config.declare import SettingKind
from strandline.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from strandline.config.migration_state import MIGRATION_STATE, migration_state_entry
from strandline.errors import InvalidRequest, StrandlineError, UnsupportedVersion
from strandline.metadata import ConfigResource, ConfigResourceType, Images, TopicImage, configs_of
from strandline.model import BrokerId
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import CurrentSettings, outcome, unknown_topic
from strandline.server.handlers.configs.loggers import BrokerLoggers
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from strandline.wire.messages.list_config_resources import (
    ConfigResource as ListedResource,
)
from strandline.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

DYNAMIC_BROKER_LOGGER: Final = 6
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_LISTED: Final = (
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.BROKER,
    ConfigResourceType.TOPIC,
)


class MigrationStates(Protocol):
    """How far topics are on their way from classic to diskless."""

    async def of_topics(self, topics: Collection[TopicImage]) -> Mapping[str, str]:
        """The value of `diskless.migration.state`, by topic name. Raises nothing: what is not known is UNKNOWN."""


class ConfigsHandler:
    """Describes settings with their sources."""

    def __init__(
        self,
        node_id: BrokerId,
        images: Images,
        settings: CurrentSettings,
        loggers: BrokerLoggers,
        states: MigrationStates,
    ) -> None:
        self._node_id = node_id
        self._states = states
        self._images = images
        self._settings = settings
        self._loggers = loggers

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_CONFIGS: self.describe_configs,
            ApiKey.LIST_CONFIG_RESOURCES: self.list_config_resources,
        }

    async def describe_configs(
        self, request: DescribeConfigsRequest, context: RequestContext
    ) -> DescribeConfigsResponse:
        """One answer per resource."""
        results = []
        states = await self._states.of_topics(self._topics_with_state(request))
        for resource in request.resources:
            result = DescribeConfigsResult(
                resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=""
            )
            # An empty list stands for all settings, as null does: Kafka's own tools send it.
            names = resource.configuration_keys or None
            try:
                result.configs = self._describe(resource.resource_type, resource.resource_name, names, request, states)
            except StrandlineError as error:
                result.error_code, result.error_message = outcome(error)
            results.append(result)
        return DescribeConfigsResponse(results=results)

    def _topics_with_state(self, request: DescribeConfigsRequest) -> list[TopicImage]:
        """The topics whose state is asked for, by its name or with all settings."""
        topics = self._images.image.topics
        return [
            topics[resource.resource_name]
            for resource in request.resources
            if resource.resource_type == ConfigResourceType.TOPIC
            and resource.resource_name in topics
            and (not resource.configuration_keys or MIGRATION_STATE.name in resource.configuration_keys)
        ]

    def _describe(
        self,
        kind: int,
        name: str,
        names: Collection[str] | None,
        request: DescribeConfigsRequest,
        states: Mapping[str, str],
    ) -> list[DescribeConfigsResourceResult]:
        if kind == ConfigResourceType.TOPIC:
            entries = self._topic(name, names, states.get(name))
        elif kind == ConfigResourceType.BROKER and name == "":
            entries = describe_cluster_default(self._settings(), names)
        elif kind == ConfigResourceType.BROKER:
            self._check_broker(name)
            entries = describe_broker(self._settings(), names)
        elif kind == ConfigResourceType.CLIENT_METRICS:
            entries = self._client_metrics(name, names)
        elif kind == ConfigResourceType.GROUP:
            if not name:
                raise InvalidRequest("The name of a group must not be empty.")
            overrides = self._images.image.overrides(ConfigResource(ConfigResourceType.GROUP, name))
            entries = describe_group(self._settings(), overrides, names)
        elif kind == ConfigResourceType.BROKER_LOGGER:
            self._check_broker(name)
            return self._logger_levels(names, request)
        else:
            raise InvalidRequest(f"Settings of resources of type {kind} are not supported.")
        return [_described(entry, request) for entry in entries]

    def _topic(self, name: str, names: Collection[str] | None, state: str | None) -> list[ConfigEntry]:
        image = self._images.image
        if name not in image.topics:
            raise unknown_topic(name)
        entries = describe_topic(self._settings(), image.topic_overrides(name), names)
        if state is not None:
            entries.append(migration_state_entry(state))
            entries.sort(key=lambda entry: entry.name)
        return entries

    def _client_metrics(self, name: str, names: Collection[str] | None) -> list[ConfigEntry]:
        if not name:
            raise InvalidRequest("A subscription to metrics of clients has a name.")
        overrides = self._images.image.overrides(ConfigResource(ConfigResourceType.CLIENT_METRICS, name))
        return describe_client_metrics(overrides, names)

    def _check_broker(self, name: str) -> None:
        if not _INTEGER.fullmatch(name):
            raise InvalidRequest(f"Broker id must be an integer, but it is: {name}")
        if int(name) != self._node_id:
            raise InvalidRequest(f"Unexpected broker id, expected {self._node_id} or empty string, but received {name}")

    def _logger_levels(
        self, names: Collection[str] | None, request: DescribeConfigsRequest
    ) -> list[DescribeConfigsResourceResult]:
        return [
            DescribeConfigsResourceResult(
                name=name,
                value=level,
                config_source=DYNAMIC_BROKER_LOGGER,
                config_type=SettingKind.STRING.value,
                documentation=None,
                synonyms=(
                    [DescribeConfigsSynonym(name=name, value=level, source=DYNAMIC_BROKER_LOGGER)]
                    if request.include_synonyms
                    else []
                ),
            )
            for name, level in self._loggers.levels().items()
            if names is None or name in names
        ]

    async def list_config_resources(
        self, request: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        """What has settings. Version 0 asks for subscriptions to metrics of clients only."""
        wanted = request.resource_types or (_LISTED if context.api_version else [ConfigResourceType.CLIENT_METRICS])
        unknown = [kind for kind in wanted if kind not in _LISTED]
        if unknown:
            code, _ = outcome(UnsupportedVersion(f"There are no resources of type {unknown[0]}."))
            return ListConfigResourcesResponse(error_code=code)
        image = self._images.image
        names = {
            ConfigResourceType.GROUP: sorted(configs_of(image, ConfigResourceType.GROUP)),
            ConfigResourceType.CLIENT_METRICS: sorted(configs_of(image, ConfigResourceType.CLIENT_METRICS)),
            ConfigResourceType.BROKER_LOGGER: [str(node) for node in sorted(image.brokers)],
            ConfigResourceType.BROKER: [str(node) for node in sorted(image.brokers)],
            ConfigResourceType.TOPIC: sorted(image.topics),
        }
        return ListConfigResourcesResponse(
            config_resources=[
                ListedResource(resource_name=name, resource_type=kind)
                for kind in _LISTED
                if kind in wanted
                for name in names.get(kind, ())
            ]
        )


def _described(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = []
    if request.include_synonyms:
        synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms,
        config_type=entry.kind.value,
        documentation=entry.documentation if request.include_documentation else None,
    )
