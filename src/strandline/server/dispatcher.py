"""Passes each request to its handler: Produce and Fetch directly, the others as tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, Protocol

from strandline.clock import Clock
from strandline.server.context import ANONYMOUS, Handler, RequestContext
from strandline.server.exchange import Exchange
from strandline.server.times import RequestTimes
from strandline.server.times.errors import error_codes
from strandline.server.times.waits import NotingWaits
from strandline.tasks import TaskSet
from strandline.wire import fetch_codec, produce_codec
from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.primitives import DECODING_FAILURES, MalformedRequest, skip_tags, truncated
from strandline.wire.registry import decode_request, encode_response, unsupported_api_versions

logger = logging.getLogger(__name__)

_HEAD_BYTES: Final = 8
_I16 = Struct(">h")
_I32 = Struct(">i")


class FastHandler(Protocol):
    """Serves one API straight from the frame."""

    def handle(self, frame: memoryview, position: int, exchange: Exchange, client_id: str | None) -> None:
        """Answer the exchange now or later. Raises MalformedRequest before it has any effect."""


class ApiDispatcher:
    """Knows which handler serves which API, and counts requests."""

    def __init__(
        self, *, produce: FastHandler, fetch: FastHandler, handlers: Mapping[ApiKey, Handler], clock: Clock
    ) -> None:
        self._produce = produce
        self._fetch = fetch
        self._handlers = handlers
        self._tasks = TaskSet()
        self.times = RequestTimes(clock)

    def dispatch(self, exchange: Exchange, frame: memoryview) -> None:
        """Start serving the request. Raises MalformedRequest, upon which the connection is closed.

        Only requests of APIs and versions that exist are counted: others could be any number.
        """
        api_key, version = exchange.api_key, exchange.api_version
        if api_key == ApiKey.PRODUCE:
            if not produce_codec.MIN_VERSION <= version <= produce_codec.MAX_VERSION:
                raise MalformedRequest(f"Produce version {version} is not supported (3 to 13 are).")
            position, client_id = _skip_header(frame, flexible=version >= produce_codec.FIRST_FLEXIBLE)
            exchange.times = times = self.times[ApiKey.PRODUCE]
            times.versions[version] += 1
            self._produce.handle(frame, position, exchange, client_id)
        elif api_key == ApiKey.FETCH:
            if not fetch_codec.MIN_VERSION <= version <= fetch_codec.MAX_VERSION:
                raise MalformedRequest(f"Fetch version {version} is not supported (4 to 18 are).")
            position, client_id = _skip_header(frame, flexible=version >= fetch_codec.FIRST_FLEXIBLE)
            exchange.times = times = self.times[ApiKey.FETCH]
            times.versions[version] += 1
            self._fetch.handle(frame, position, exchange, client_id)
        else:
            self._dispatch_other(exchange, frame)

    def _dispatch_other(self, exchange: Exchange, frame: memoryview) -> None:
        api_key, version = exchange.api_key, exchange.api_version
        versions = SERVED_APIS.get(api_key)  # type: ignore[call-overload]  # an int from the wire
        handler = self._handlers.get(api_key)  # type: ignore[call-overload]
        if versions is None or handler is None:
            raise MalformedRequest(f"API key {api_key} is not supported.")
        if not versions.min <= version <= versions.max:
            if api_key == ApiKey.API_VERSIONS:
                exchange.respond([_framed(unsupported_api_versions(exchange.correlation_id))])
                return
            raise MalformedRequest(
                f"{ApiKey(api_key).name} version {version} is not supported ({versions.min} to {versions.max} are)."
            )
        exchange.times = times = self.times[api_key]
        times.versions[version] += 1
        header, message = decode_request(frame)
        exchange.release_frame()
        connection = exchange.connection
        context = RequestContext(
            api_key=api_key,
            api_version=version,
            correlation_id=exchange.correlation_id,
            client_id=header.client_id,
            client_host=connection.client_host,
            listener=connection.listener,
            principal=ANONYMOUS,
            connection_id=connection.connection_id,
            client_port=connection.client_port,
        )
        self._tasks.start(self._serve(handler, message, context, exchange), name="request")

    async def _serve(self, handler: Handler, message: Any, context: RequestContext, exchange: Exchange) -> None:
        exchange.begins()
        try:
            response = await NotingWaits(handler(message, context), exchange.waits)
            payload = encode_response(ApiKey(context.api_key), context.api_version, context.correlation_id, response)
        except asyncio.CancelledError:
            raise
        except Exception:  # an unforeseen failure of a handler ends this connection only
            name = ApiKey(context.api_key).name
            logger.exception("%s v%d of %s failed", name, context.api_version, context.client_id)
            exchange.abort(f"the handler of {name} failed")
            return
        for code in error_codes(response):
            exchange.count_error(code)
        exchange.waits()
        # Fetch counts what it holds by itself; ShareFetch has copied the records that it sends.
        exchange.respond([_framed(payload)], memory=len(payload) if context.api_key == ApiKey.SHARE_FETCH else 0)

    async def close(self) -> None:
        """Cancel the requests that are being served."""
        await self._tasks.close()


def _framed(payload: bytes) -> bytes:
    return _I32.pack(len(payload)) + payload


def _skip_header(frame: memoryview, *, flexible: bool) -> tuple[int, str | None]:
    """Where the body starts, and the client id."""
    if len(frame) < _HEAD_BYTES + 2:
        raise MalformedRequest("The request ends inside its header.")
    (length,) = _I16.unpack_from(frame, _HEAD_BYTES)
    position = _HEAD_BYTES + 2
    client_id = None
    if length >= 0:
        end = position + length
        if end > len(frame):
            raise MalformedRequest("The request ends inside its client id.")
        client_id = str(frame[position:end], "utf-8", "replace")
        position = end
    if not flexible:
        return position, client_id
    try:
        return skip_tags(frame, position), client_id
    except DECODING_FAILURES as error:
        raise truncated("the request header") from error
