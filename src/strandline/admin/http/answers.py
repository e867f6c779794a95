"""What HTTP requests that change something have in common: protection against web pages, their bodies, their errors.

The listener has no authentication: every client that reaches it can send these requests, as every client that reaches
the Kafka listener can alter settings. A web page in the browser of a user must not be able to send them. So requests
that change something need `Content-Type: application/json`, which a browser sends to another site only if that site
agrees, and we never do. Requests with an `Origin` header, which only browsers add, are refused, whatever name the
browser resolved.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from strandline.errors import InvalidRequest, StrandlineError
from strandline.wire.errors import ErrorCode, error_code_of

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
REFUSED: Final = 409
TRY_AGAIN: Final = 503
_STATUSES: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.INVALID_REQUEST: BAD_REQUEST,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: NOT_FOUND,
    ErrorCode.INVALID_TOPIC_EXCEPTION: NOT_FOUND,
    ErrorCode.NOT_CONTROLLER: TRY_AGAIN,
    ErrorCode.REQUEST_TIMED_OUT: TRY_AGAIN,
    ErrorCode.NETWORK_EXCEPTION: TRY_AGAIN,
}


def from_a_program(endpoint: Endpoint) -> Endpoint:
    """Refuse requests that a web page in a browser could have sent."""

    @wraps(endpoint)
    async def guarded(request: Request) -> Response:
        if "origin" in request.headers:
            return refusal("Pages in a browser may not change topics: send this without the header Origin.", 403)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return refusal("Send this with the header Content-Type: application/json.", 415)
        return await endpoint(request)

    return guarded


def in_sentences(endpoint: Endpoint, statuses: Mapping[ErrorCode, int] | None = None) -> Endpoint:
    """Errors as JSON: 404 for what is unknown, 503 for what may work later, 409 for what is refused.

    `statuses` has those of further errors.
    """
    known = {**_STATUSES, **(statuses or {})}

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except StrandlineError as error:
            code = error_code_of(error)
            return refusal(str(error), known.get(code, REFUSED), code)

    return answered


def refusal(sentence: str, status: int, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> Response:
    """An error as JSON."""
    return JSONResponse({"error": sentence, "code": code.name}, status_code=status)


async def body_of(request: Request, *, most_bytes: int) -> bytes:
    """The body. Raises InvalidRequest if it is too long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise InvalidRequest(f"The body is longer than {most_bytes} bytes.")
        parts.append(part)
    return b"".join(parts)


def json_of(body: bytes) -> Any:
    """The JSON of a body; an empty one is an empty object. Raises InvalidRequest."""
    try:
        return json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The body is no JSON: {error}.") from error
