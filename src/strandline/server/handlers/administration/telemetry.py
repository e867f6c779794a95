"""GetTelemetrySubscriptions and PushTelemetry, version 0 (KIP-714). What clients push is shown on `/metrics`.

Kafka offers them only with a plugin that takes the metrics; here they are offered while there is a subscription, and
answered always. Clients are asked for numbers that count from their start on (Kafka asks for the difference from push
to push), because that is what Prometheus needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.config.client_metrics import (
    CLIENT_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    CLIENT_SOURCE_ADDRESS,
    CLIENT_SOURCE_PORT,
)
from strandline.errors import StrandlineError
from strandline.records import Codec
from strandline.server.client_software import ClientSoftware
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.telemetry import ClientTelemetry
from strandline.server.telemetry.clients import Push
from strandline.server.telemetry.subscriptions import ClientAttributes
from strandline.wire.api import ApiKey
from strandline.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from strandline.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

_COMPRESSIONS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order in which clients are to prefer them."""


class TelemetryHandler:
    """Takes metrics of clients."""

    def __init__(self, telemetry: ClientTelemetry, software: ClientSoftware) -> None:
        self._telemetry, self._software = telemetry, software

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: self.get_telemetry_subscriptions,
            ApiKey.PUSH_TELEMETRY: self.push_telemetry,
        }

    async def get_telemetry_subscriptions(
        self, request: GetTelemetrySubscriptionsRequest, context: RequestContext
    ) -> GetTelemetrySubscriptionsResponse:
        """What the client is to push."""
        try:
            instance_id, subscription = self._telemetry.subscribe(request.client_instance_id, self._attributes(context))
        except StrandlineError as error:
            code, _ = outcome(error)
            return GetTelemetrySubscriptionsResponse(error_code=code, client_instance_id=request.client_instance_id)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=subscription.id,
            accepted_compression_types=list(_COMPRESSIONS),
            push_interval_ms=subscription.interval_ms,
            telemetry_max_bytes=self._telemetry.max_bytes,
            delta_temporality=False,
            requested_metrics=list(subscription.metrics),
        )

    async def push_telemetry(self, request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
        """Metrics of a client."""
        push = Push(
            instance_id=request.client_instance_id,
            subscription_id=request.subscription_id,
            is_last=request.terminating,
            compression=request.compression_type,
            payload=bytes(request.metrics),
        )
        try:
            await self._telemetry.push(push, self._attributes(context), context.client_id or "")
        except StrandlineError as error:
            code, _ = outcome(error)
            return PushTelemetryResponse(error_code=code)
        return PushTelemetryResponse()

    def _attributes(self, context: RequestContext) -> ClientAttributes:
        software = self._software.of(context.connection_id)
        return {
            CLIENT_ID: context.client_id,
            CLIENT_SOFTWARE_NAME: software.name,
            CLIENT_SOFTWARE_VERSION: software.version,
            CLIENT_SOURCE_ADDRESS: context.client_host,
            CLIENT_SOURCE_PORT: None if context.client_port is None else str(context.client_port),
        }
