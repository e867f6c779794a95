"""Envelope (version 0), and the requests that travel in it: what only the active controller can carry out.

Clients may send these requests to any broker. A broker that is not the controller packs the request into an Envelope,
sends it to the controller and passes the answer on; before that it reads the newest metadata, so that the client finds
the change on this broker too. While there is no controller (it died, and its lease has not run out) the request waits;
after 15 seconds its items get NOT_CONTROLLER. A request that was lost with its connection is sent again, as by Kafka: a
topic that the lost request had created is then answered with TOPIC_ALREADY_EXISTS.

Log levels belong to a broker and not to the controller, so the broker that receives the request changes its own.

Envelopes themselves are never forwarded: NOT_CONTROLLER sends the broker to look for the controller again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from strandline.errors import InvalidRequest, NotController, StrandlineError, UnsupportedVersion
from strandline.metadata import ActiveController, ConfigResourceType, ControllerUnreachable
from strandline.server.context import ANONYMOUS, Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from strandline.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.primitives import MalformedRequest
from strandline.wire.principal import decode_principal, encode_principal
from strandline.wire.registry import (
    Message,
    UnsupportedApi,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from strandline.wire.structure import Structure

FORWARDED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
    }
)


class ForwardingHandlers:
    """Stands before the handlers of this broker's own controller."""

    def __init__(self, controller: ActiveController, local: Mapping[ApiKey, Handler]) -> None:
        self._controller = controller
        self._local = {key: local[key] for key in FORWARDED}

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            **dict.fromkeys(FORWARDED, self.serve),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self.incremental_alter_configs,
            ApiKey.ENVELOPE: self.envelope,
        }

    async def serve(self, request: Message, context: RequestContext) -> Message:
        """Carry the request out, here or on the broker that is the controller."""
        try:
            return await self._controller.patiently(lambda: self._attempt(request, context))
        except (NotController, ControllerUnreachable):
            return await self._local[ApiKey(context.api_key)](request, context)  # NOT_CONTROLLER for each item

    async def _attempt(self, request: Message, context: RequestContext) -> Message:
        if self._controller.is_local:
            return await self._carry_out(request, context)
        api_key, version = ApiKey(context.api_key), context.api_version
        frame = await self._controller.forward(
            encode_request(api_key, version, context.correlation_id, context.client_id, request),
            principal=encode_principal(context.principal),
            host=ip_address(context.client_host).packed,
        )
        _, response = decode_response(api_key, version, memoryview(frame))
        return response

    async def _carry_out(self, request: Message, context: RequestContext) -> Message:
        """Raises NotController if this broker is not the controller any more."""
        response = await self._local[ApiKey(context.api_key)](request, context)
        if ErrorCode.NOT_CONTROLLER in _error_codes(response):
            raise NotController("Another broker has become the active controller.")
        return response

    # Loggers

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        """Settings go to the controller; log levels are changed here."""
        local = self._local[ApiKey.INCREMENTAL_ALTER_CONFIGS]
        levels: IncrementalAlterConfigsResponse = await local(_only(request, loggers=True), context)
        settings = IncrementalAlterConfigsResponse()
        if len(levels.responses) < len(request.resources):
            settings = await self.serve(_only(request, loggers=False), context)
        of_loggers, of_others = iter(levels.responses), iter(settings.responses)
        return IncrementalAlterConfigsResponse(
            throttle_time_ms=settings.throttle_time_ms,
            responses=[next(of_loggers if _is_logger(resource) else of_others) for resource in request.resources],
        )

    # At the controller

    async def envelope(self, request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
        """Carry out a request that another broker forwards."""
        try:
            if not self._controller.is_local:
                raise NotController("This broker is not the active controller.")
            return EnvelopeResponse(response_data=await self._open(request, context))
        except StrandlineError as error:
            code, _ = outcome(error)
            return EnvelopeResponse(error_code=code)

    async def _open(self, envelope: EnvelopeRequest, outer: RequestContext) -> bytes:
        try:
            header, request = decode_request(memoryview(envelope.request_data))
            principal = decode_principal(envelope.request_principal) if envelope.request_principal else ANONYMOUS
            host = str(ip_address(envelope.client_host_address)) if envelope.client_host_address else outer.client_host
        except UnsupportedApi as error:
            raise UnsupportedVersion(str(error)) from error
        except (MalformedRequest, ValueError) as error:
            raise InvalidRequest(f"The envelope holds no request: {error}") from error
        if header.api_key not in FORWARDED:
            raise InvalidRequest(f"API {header.api_key} is not served by the controller.")
        inner = RequestContext(
            api_key=header.api_key,
            api_version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            client_host=host,
            listener=outer.listener,
            principal=principal,
            connection_id=outer.connection_id,
        )
        response = await self._carry_out(request, inner)
        return encode_response(ApiKey(header.api_key), header.api_version, header.correlation_id, response)


def _is_logger(resource: AlterConfigsResource) -> bool:
    return resource.resource_type == ConfigResourceType.BROKER_LOGGER


def _only(request: IncrementalAlterConfigsRequest, *, loggers: bool) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[resource for resource in request.resources if _is_logger(resource) is loggers],
        validate_only=request.validate_only,
    )


def _error_codes(part: object) -> Iterator[int]:
    """Every error code of a response."""
    if isinstance(part, list):
        for element in part:
            yield from _error_codes(element)
    elif isinstance(part, Structure):
        for name in part.__slots__:
            value = getattr(part, name)
            if name == "error_code":
                yield value
            else:
                yield from _error_codes(value)
