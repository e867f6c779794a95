"""Changes settings of topics on behalf of callers that do not speak Kafka's protocol."""

from __future__ import annotations

from typing import Final

from strandline.metadata import ConfigOperation, ConfigResourceType
from strandline.server.context import ANONYMOUS, Handler, RequestContext
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode, error_of
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_VERSION: Final = 1
_LOOPBACK: Final = "127.0.0.1"


class TopicSettingsChanges:
    """Goes the way of a client's IncrementalAlterConfigs: to the active controller, wherever that is."""

    def __init__(self, incremental_alter_configs: Handler) -> None:
        self._alter = incremental_alter_configs

    async def change(self, topic: str, name: str, value: str, *, validate_only: bool) -> None:
        """See `TopicSettings`."""
        wish = AlterableConfig(name=name, config_operation=ConfigOperation.SET, value=value)
        resource = AlterConfigsResource(resource_type=ConfigResourceType.TOPIC, resource_name=topic, configs=[wish])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        answer = (await self._alter(request, _context())).responses[0]
        if answer.error_code != ErrorCode.NONE:
            raise error_of(answer.error_code, answer.error_message)


def _context() -> RequestContext:
    return RequestContext(
        api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
        api_version=_VERSION,
        correlation_id=0,
        client_id="http",
        client_host=_LOOPBACK,
        listener="",
        principal=ANONYMOUS,
        connection_id=0,
    )
