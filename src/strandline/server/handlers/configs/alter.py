"""AlterConfigs (versions 0 to 2) and IncrementalAlterConfigs (versions 0 and 1).

AlterConfigs replaces all settings of a resource, IncrementalAlterConfigs sets, deletes, appends and subtracts. Topics
and brokers are changed by the controller, loggers by the broker that has them (incrementally only). A resource that is
named twice gets INVALID_REQUEST, each resource its own answer, and a resource is changed as a whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from strandline.errors import InvalidRequest, StrandlineError
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    ConfigResource,
    ConfigResourceType,
    Controller,
)
from strandline.model import BrokerId
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.handlers.configs.loggers import BrokerLoggers
from strandline.wire.api import ApiKey
from strandline.wire.messages import alter_configs as full
from strandline.wire.messages import incremental_alter_configs as incremental

Wish = TypeVar("Wish", ConfigAlteration, ConfigReplacement)
ResourceResponse = TypeVar(
    "ResourceResponse", full.AlterConfigsResourceResponse, incremental.AlterConfigsResourceResponse
)
Answers: TypeAlias = list[StrandlineError | None]


class _Key(NamedTuple):
    type: int
    name: str


class AlterConfigsHandler:
    """Changes settings."""

    def __init__(self, node_id: BrokerId, controller: Controller, loggers: BrokerLoggers) -> None:
        self._node_id = node_id
        self._controller = controller
        self._loggers = loggers

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
        for index, resource in enumerate(request.resources):
            if answers[index] is None:
                try:
                    wishes[index] = _replacement(keys[index], resource.configs)
                except StrandlineError as error:
                    answers[index] = error
        await _ask(self._controller.replace_configs, wishes, answers, validate_only=request.validate_only)
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
        await _ask(self._controller.alter_configs, wishes, answers, validate_only=request.validate_only)
        return incremental.IncrementalAlterConfigsResponse(
            responses=_responses(incremental.AlterConfigsResourceResponse, keys, answers)
        )

    def _alter_loggers(self, name: str, changes: Sequence[ConfigChange], *, validate_only: bool) -> None:
        if name != str(self._node_id):
            raise InvalidRequest(f"Unexpected broker id, expected {self._node_id}, but received {name}")
        self._loggers.alter(changes, validate_only=validate_only)


async def _ask(
    controller: Callable[[Sequence[Wish], bool], Coroutine[Any, Any, Answers]],
    wishes: Mapping[int, Wish],
    answers: Answers,
    *,
    validate_only: bool,
) -> None:
    """Ask the controller, and put its answers into the places of the wishes."""
    if not wishes:
        return
    try:
        given = await controller(list(wishes.values()), validate_only)
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
    if key.type not in (ConfigResourceType.TOPIC, ConfigResourceType.BROKER):
        raise InvalidRequest(f"Settings of resources of type {key.type} cannot be changed.")
    return ConfigResource(ConfigResourceType(key.type), key.name)


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
