"""The switch of topics to diskless over HTTP: how far it is, and start, abort and complete.

The listener has no authentication. Whoever can reach it can do this, as whoever can reach the Kafka listener can alter
settings. What must not be able to is a page in the browser of somebody who can: requests that change something need
`Content-Type: application/json`, which a browser sends to another site only if that site agrees, and we never do; and
requests with an `Origin`, which browsers add and nobody else, are refused, whatever name the browser resolved.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from strandline.admin.http.migration_json import topic_migration
from strandline.admin.migration_text import cost_of_completing
from strandline.admin.status import BrokerSource
from strandline.controlplane.values import MigrationState
from strandline.errors import InvalidRequest, StrandlineError
from strandline.wire.errors import ErrorCode, error_code_of

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_FLAG: Final = "diskless.enable"
_MOST_BYTES: Final = 4096
_NOT_FOUND: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
_TRY_AGAIN: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION})
_STATES: Final = ", ".join(MigrationState)


def migration_routes(source: BrokerSource) -> list[Route]:
    """The routes, over a broker."""

    async def one(request: Request) -> Response:
        """How far a topic is: all its partitions, with the phases of those that this broker leads."""
        return JSONResponse(topic_migration(await source.migrations.topic_status(request.path_params["topic"])))

    async def every(request: Request) -> Response:
        """How far all topics are, or those in a state."""
        asked = request.query_params.getlist("state")
        found = await source.migrations.statuses(_states(asked) if asked else None)
        return JSONResponse({"topics": [topic_migration(status) for status in found]})

    async def start(request: Request) -> Response:
        return await _set_flag(request, "true")

    async def abort(request: Request) -> Response:
        return await _set_flag(request, "false")

    async def _set_flag(request: Request, value: str) -> Response:
        topic, body = request.path_params["topic"], await _wishes(request, "dry_run")
        await source.topic_settings.change(topic, _FLAG, value, validate_only=body["dry_run"])
        return await _answer(topic, dry_run=body["dry_run"])

    async def complete(request: Request) -> Response:
        """End the switch although not everything is copied. Without `yes` it only says what that may cost."""
        topic, body = request.path_params["topic"], await _wishes(request, "yes")
        if not body["yes"]:
            status = await source.migrations.topic_status(topic)
            refusal = {
                "error": f'{cost_of_completing(status)} Send {{"yes": true}} to do it.',
                **topic_migration(status),
            }
            return JSONResponse(refusal, status_code=409)
        await source.migrations.complete(topic)
        return await _answer(topic, dry_run=False)

    async def _answer(topic: str, *, dry_run: bool) -> Response:
        return JSONResponse(
            {"dry_run": dry_run, **topic_migration(await source.migrations.topic_status(topic))},
            status_code=200 if dry_run else 202,
        )

    path = "/topics/{topic}/migration"
    return [
        Route("/migrations", _in_sentences(every, unavailable=ErrorCode.KAFKA_STORAGE_ERROR)),
        Route(path, _in_sentences(one, unavailable=ErrorCode.KAFKA_STORAGE_ERROR)),
        *(
            Route(f"{path}/{action.__name__}", _in_sentences(_from_a_program(action)), methods=["POST"])
            for action in (start, abort, complete)
        ),
    ]


def _states(asked: list[str]) -> list[MigrationState]:
    try:
        return [MigrationState(word.upper()) for text in asked for word in text.split(",")]
    except ValueError as error:
        raise InvalidRequest(f"{error}: state has to be one of {_STATES}.") from error


def _from_a_program(endpoint: Endpoint) -> Endpoint:
    """Refuse what a page in somebody's browser could have sent."""

    @wraps(endpoint)
    async def guarded(request: Request) -> Response:
        if "origin" in request.headers:
            return _refusal("Pages in a browser may not change topics: send this without the header Origin.", 403)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refusal("Send this with the header Content-Type: application/json.", 415)
        return await endpoint(request)

    return guarded


def _in_sentences(endpoint: Endpoint, *, unavailable: ErrorCode | None = None) -> Endpoint:
    """Errors as JSON: 404 for what is unknown, 503 for what may work later, 409 for what is refused."""

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except StrandlineError as error:
            code = error_code_of(error)
            status = 404 if code in _NOT_FOUND else 503 if code in _TRY_AGAIN or code == unavailable else 409
            if code == ErrorCode.INVALID_REQUEST:
                status = 400
            return _refusal(str(error), status, code)

    return answered


def _refusal(sentence: str, status: int, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> Response:
    return JSONResponse({"error": sentence, "code": code.name}, status_code=status)


async def _wishes(request: Request, *names: str) -> dict[str, bool]:
    """The booleans of a body that is a JSON object or empty. Raises InvalidRequest."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise InvalidRequest(f"The body is longer than {_MOST_BYTES} bytes.")
    try:
        found: Any = json.loads(body) if body.strip() else {}
    except ValueError as error:
        raise InvalidRequest(f"The body is no JSON: {error}.") from error
    if not isinstance(found, dict) or not found.keys() <= set(names):
        raise InvalidRequest(f"The body has to be a JSON object with nothing but {', '.join(names)}.")
    wishes = {name: found.get(name, False) for name in names}
    if not all(isinstance(value, bool) for value in wishes.values()):
        raise InvalidRequest(f"{', '.join(names)} has to be true or false.")
    return wishes
