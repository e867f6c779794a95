"""Passes each request to its handler: Produce and Fetch directly, the others as coroutines, most of them as tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from struct import Struct
from typing import Any, Final, Protocol

from strandline.clock import Clock
from strandline.server.context import ANONYMOUS, Handler, RequestContext
from strandline.server.exchange import Exchange
from strandline.server.times import NotingWaits, RequestTimes, count_error_codes
from strandline.tasks import TaskSet
from strandline.wire import fetch_codec, produce_codec
from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.primitives import DECODING_FAILURES, MalformedRequest, skip_tags, truncated
from strandline.wire.registry import read_request, response_frame, unsupported_api_versions

logger = logging.getLogger(__name__)

_HEAD_BYTES: Final = 8
_I16 = Struct(">h")
_I32 = Struct(">i")
_FAILED: Final = "%s v%d of %s failed"
_REASON: Final = "the handler of %s failed"

SERVED_AT_ONCE: Final[frozenset[int]] = frozenset(
    {ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.CONSUMER_GROUP_HEARTBEAT}
)
"""What clients send all the time, and most of it is answered without waiting. Their handlers have no task until they
wait for the first time: until then they must not use what needs one, such as `asyncio.timeout`."""


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
        client_id, message = read_request(frame, api_key, version)
        if exchange.holds_frame:
            exchange.release_frame()
        connection = exchange.connection
        context = RequestContext(
            api_key,
            version,
            exchange.correlation_id,
            client_id,
            connection.client_host,
            connection.listener,
            ANONYMOUS,
            connection.connection_id,
            connection.client_port,
        )
        if api_key in SERVED_AT_ONCE:
            self._serve_now(handler, message, context, exchange)
        else:
            self._tasks.start(self._serve(handler, message, context, exchange), name="request")

    def _serve_now(self, handler: Handler, message: Any, context: RequestContext, exchange: Exchange) -> None:
        """Let the handler run until it waits for something. A task, which costs more than most of them do, is only
        made if it does."""
        work = handler(message, context)
        try:
            waited_for = work.send(None)
        except StopIteration as end:
            response = end.value
        except Exception:  # an unforeseen failure of a handler ends this connection only
            logger.exception(_FAILED, *_named(context))
            exchange.abort(_REASON % _named(context)[0])
            return
        else:
            exchange.waits()
            going_on = NotingWaits.going_on(work, waited_for, exchange.waits)
            self._tasks.start(self._answer_later(going_on, context, exchange), name="request")
            return
        _respond(response, context, exchange)

    async def _serve(self, handler: Handler, message: Any, context: RequestContext, exchange: Exchange) -> None:
        exchange.begins()
        await self._answer_later(NotingWaits(handler(message, context), exchange.waits), context, exchange)

    async def _answer_later(self, work: Awaitable[Any], context: RequestContext, exchange: Exchange) -> None:
        try:
            response = await work
        except asyncio.CancelledError:
            raise
        except Exception:  # an unforeseen failure of a handler ends this connection only
            logger.exception(_FAILED, *_named(context))
            exchange.abort(_REASON % _named(context)[0])
            return
        exchange.waits()
        _respond(response, context, exchange)

    async def close(self) -> None:
        """Cancel the requests that are being served."""
        await self._tasks.close()


def _respond(response: Any, context: RequestContext, exchange: Exchange) -> None:
    try:
        frame = response_frame(context.api_key, context.api_version, context.correlation_id, response)
    except Exception:  # an answer that cannot be written ends this connection only
        logger.exception(_FAILED, *_named(context))
        exchange.abort(_REASON % _named(context)[0])
        return
    count_error_codes(response, exchange.count_error)
    # Fetch counts what it holds by itself; ShareFetch has copied the records that it sends.
    exchange.respond([frame], memory=len(frame) if context.api_key == ApiKey.SHARE_FETCH else 0)


def _named(context: RequestContext) -> tuple[str, int, str | None]:
    return ApiKey(context.api_key).name, context.api_version, context.client_id


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
