"""AlterConfigs (versions 0 to 2) and IncrementalAlterConfigs (versions 0 and 1).

AlterConfigs replaces all settings of a resource, IncrementalAlterConfigs sets, deletes, appends and subtracts. Topics,
brokers, groups and subscriptions to metrics of clients are changed by the controller, loggers by the broker that has
them (incrementally only). A subscription without settings does not exist. A resource that is named twice gets
INVALID_REQUEST, each resource its own answer, and a resource is changed as a whole or not at all.

`diskless.migration.state` cannot be written. AlterConfigs takes it with the value that DescribeConfigs shows at that
moment, and leaves it out: older tools write back everything that they have read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from strandline.config.migration_state import MIGRATION_STATE
from strandline.errors import InvalidRequest, StrandlineError
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    ConfigResource,
    ConfigResourceType,
    Controller,
    Images,
    SwitchChecks,
)
from strandline.model import BrokerId
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.handlers.configs.describe import MigrationStates
from strandline.server.handlers.configs.loggers import BrokerLoggers
from strandline.wire.api import ApiKey
from strandline.wire.messages import alter_configs as full
from strandline.wire.messages import incremental_alter_configs as incremental

Wish = TypeVar("Wish", ConfigAlteration, ConfigReplacement)
ResourceResponse = TypeVar(
    "ResourceResponse", full.AlterConfigsResourceResponse, incremental.AlterConfigsResourceResponse
)
_STORED: Final = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)
Answers: TypeAlias = list[StrandlineError | None]


class _Key(NamedTuple):
    type: int
    name: str


class AlterConfigsHandler:
    """Changes settings."""

    def __init__(
        self,
        controller: Controller,
        images: Images,
        loggers: BrokerLoggers,
        *,
        checks: SwitchChecks,
        states: MigrationStates,
    ) -> None:
        self._node_id: BrokerId = controller.node_id
        self._controller, self._images = controller, images
        self._loggers = loggers
        self._checks, self._states = checks, states

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.ALTER_CONFIGS: self.alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self.incremental_alter_configs,
        }

    async def alter_configs(
        self, request: full.AlterConfigsRequest, context: RequestContext
    ) -> full.AlterConfigsResponse:
        """Give each resource exactly these settings."""
        keys = [_Key(resource.resource_type, resource.resource_name) for resource in request.resources]
        answers = _refusals(keys)
        wishes: dict[int, ConfigReplacement] = {}
        shown = await self._shown_states(request.resources)
        for index, resource in enumerate(request.resources):
            if answers[index] is None:
                try:
                    state = shown.get(resource.resource_name)
                    configs = [one for one in resource.configs if not _is_state(one.name, one.value, shown=state)]
                    wishes[index] = _replacement(keys[index], configs)
                except StrandlineError as error:
                    answers[index] = error
        await _ask(self._controller.replace_configs, self._checks, wishes, answers, validate_only=request.validate_only)
        return full.AlterConfigsResponse(responses=_responses(full.AlterConfigsResourceResponse, keys, answers))

    async def incremental_alter_configs(
        self, request: incremental.IncrementalAlterConfigsRequest, context: RequestContext
    ) -> incremental.IncrementalAlterConfigsResponse:
        """Apply the operations to each resource."""
        keys = [_Key(resource.resource_type, resource.resource_name) for resource in request.resources]
        answers = _refusals(keys)
        wishes: dict[int, ConfigAlteration] = {}
        for index, resource in enumerate(request.resources):
            if answers[index] is not None:
                continue
            try:
                changes = _changes(resource.configs)
                if keys[index].type == ConfigResourceType.BROKER_LOGGER:
                    self._alter_loggers(keys[index].name, changes, validate_only=request.validate_only)
                else:
                    wishes[index] = ConfigAlteration(resource=_resource(keys[index]), changes=changes)
            except StrandlineError as error:
                answers[index] = error
        await _ask(self._controller.alter_configs, self._checks, wishes, answers, validate_only=request.validate_only)
        return incremental.IncrementalAlterConfigsResponse(
            responses=_responses(incremental.AlterConfigsResourceResponse, keys, answers)
        )

    async def _shown_states(self, resources: Sequence[full.AlterConfigsResource]) -> Mapping[str, str]:
        """The state of each topic whose state is among the settings that are written."""
        topics = self._images.image.topics
        named = [
            topics[resource.resource_name]
            for resource in resources
            if resource.resource_type == ConfigResourceType.TOPIC
            and resource.resource_name in topics
            and any(config.name == MIGRATION_STATE.name for config in resource.configs)
        ]
        return await self._states.of_topics(named)

    def _alter_loggers(self, name: str, changes: Sequence[ConfigChange], *, validate_only: bool) -> None:
        if name != str(self._node_id):
            raise InvalidRequest(f"Unexpected broker id, expected {self._node_id}, but received {name}")
        self._loggers.alter(changes, validate_only=validate_only)


async def _ask(
    controller: Callable[[Sequence[Wish], bool, SwitchChecks], Coroutine[Any, Any, Answers]],
    checks: SwitchChecks,
    wishes: Mapping[int, Wish],
    answers: Answers,
    *,
    validate_only: bool,
) -> None:
    """Ask the controller, and put its answers into the places of the wishes."""
    if not wishes:
        return
    try:
        given = await controller(list(wishes.values()), validate_only, checks)
    except StrandlineError as error:
        given = [error] * len(wishes)
    for index, answer in zip(wishes, given, strict=True):
        answers[index] = answer


def _responses(make: Callable[..., ResourceResponse], keys: Sequence[_Key], answers: Answers) -> list[ResourceResponse]:
    """One response per resource. Both APIs have a class of their own with the same fields."""
    responses = []
    for key, answer in zip(keys, answers, strict=True):
        code, message = outcome(answer)
        responses.append(make(error_code=code, error_message=message, resource_type=key.type, resource_name=key.name))
    return responses


def _refusals(keys: Sequence[_Key]) -> Answers:
    """INVALID_REQUEST for each resource that is named more than once."""
    times = Counter(keys)
    return [
        InvalidRequest(f"The resource {key.name!r} of type {key.type} is named more than once.")
        if times[key] > 1
        else None
        for key in keys
    ]


def _resource(key: _Key) -> ConfigResource:
    if key.type not in _STORED:
        raise InvalidRequest(f"Settings of resources of type {key.type} cannot be changed.")
    return ConfigResource(ConfigResourceType(key.type), key.name)


def _is_state(name: str, value: str | None, *, shown: str | None) -> bool:
    """True if the state of a topic is written as it is."""
    return name == MIGRATION_STATE.name and shown is not None and value == shown


def _replacement(key: _Key, configs: Sequence[full.AlterableConfig]) -> ConfigReplacement:
    if len({config.name for config in configs}) != len(configs):
        raise InvalidRequest("A setting may be named only once.")
    return ConfigReplacement(resource=_resource(key), values={config.name: config.value for config in configs})


def _changes(configs: Sequence[incremental.AlterableConfig]) -> list[ConfigChange]:
    changes = []
    for config in configs:
        if config.config_operation not in ConfigOperation.__members__.values():
            raise InvalidRequest(f"There is no operation {config.config_operation} on settings.")
        changes.append(ConfigChange(config.name, ConfigOperation(config.config_operation), config.value))
    return changes
