"""The tiering API over HTTP, and what operators ask of a topic's conversion. docs/tiering-api.md describes it.

`POST /tiering/v2/<method>` takes the JSON of a request and answers with the JSON of its answer. A broker that does not
lead the partition says so with 421 (misdirected request): ask the metadata, and then the leader.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from strandline.admin.http.answers import (
    NOT_FOUND,
    TRY_AGAIN,
    Endpoint,
    body_of,
    from_a_program,
    in_sentences,
    json_of,
    refusal,
)
from strandline.admin.status import BrokerSource
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import (
    API_VERSION,
    AbortSegment,
    BeginSegment,
    ClaimFiles,
    CommitSegment,
    ListMerges,
    ListTriggers,
    PlanRead,
    RecordSplits,
    ReleaseFiles,
    RenewClaims,
)
from strandline.errors import InvalidRequest, LeaderNotAvailable
from strandline.wire.errors import ErrorCode

MOST_BYTES: Final = 16 * 1024 * 1024
_LARGE_BYTES: Final = 64 * 1024
_MISDIRECTED: Final = 421
_STATUSES: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _MISDIRECTED,
    ErrorCode.KAFKA_STORAGE_ERROR: TRY_AGAIN,
    ErrorCode.LEADER_NOT_AVAILABLE: TRY_AGAIN,
}
_METHODS: Final[Mapping[str, Any]] = {
    "describe": None,
    "claim-files": ClaimFiles,
    "record-splits": RecordSplits,
    "release-files": ReleaseFiles,
    "renew-claims": RenewClaims,
    "list-triggers": ListTriggers,
    "list-merges": ListMerges,
    "begin-segment": BeginSegment,
    "commit-segment": CommitSegment,
    "abort-segment": AbortSegment,
    "plan-read": PlanRead,
}
"""The type of each request of the API; None: the request has no arguments."""


def tiering_routes(source: BrokerSource) -> list[Route]:
    """The routes, over a broker."""
    return [*_topic_routes(source), *_pipeline_routes(source)]


def _pipeline_routes(source: BrokerSource) -> list[Route]:
    async def versions(_: Request) -> Response:
        return JSONResponse({"api_versions": [API_VERSION]})

    async def call(request: Request) -> Response:
        method = request.path_params["method"]
        if method not in _METHODS:
            sentence = f"The tiering API has no {method}. It has {', '.join(_METHODS)}."
            return refusal(sentence, NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
        wish = await _wish(request, _METHODS[method])
        return await _answer(await getattr(source.tiering, method.replace("-", "_"))(*wish))

    async def other_version(request: Request) -> Response:
        if request.path_params["version"] == f"v{API_VERSION}":
            return refusal("Send this as a POST.", 405)
        sentence = f"This broker speaks version {API_VERSION} of the tiering API, not {request.path_params['version']}."
        return refusal(sentence, NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)

    return [
        Route(f"/tiering/v{API_VERSION}", versions),
        Route(f"/tiering/v{API_VERSION}/{{method}}", _changing(call), methods=["POST"]),
        Route("/tiering/{version}", other_version, methods=["GET", "POST"]),
        Route("/tiering/{version}/{method}", other_version, methods=["GET", "POST"]),
    ]


def _topic_routes(source: BrokerSource) -> list[Route]:
    async def every(_: Request) -> Response:
        """How far all diskless topics are converted."""
        return await _answer({"topics": await source.tiering.statuses(())})

    async def one(request: Request) -> Response:
        """How far a topic is converted."""
        topic = request.path_params["topic"]
        found = await source.tiering.statuses((topic,))
        if not found:
            raise LeaderNotAvailable(f"Topic {topic} has no diskless log yet. Try again.")
        return await _answer(found[0])

    async def pause(request: Request) -> Response:
        return await _answer(await source.tiering.pause(request.path_params["topic"], is_paused=True))

    async def resume(request: Request) -> Response:
        return await _answer(await source.tiering.pause(request.path_params["topic"], is_paused=False))

    async def trigger(request: Request) -> Response:
        return await _answer(await source.tiering.trigger(request.path_params["topic"]))

    path = "/topics/{topic}/tiering"
    return [
        Route("/tiering", in_sentences(every, _STATUSES)),
        Route(path, in_sentences(one, _STATUSES)),
        *(
            Route(f"{path}/{action.__name__}", _changing(action), methods=["POST"])
            for action in (pause, resume, trigger)
        ),
    ]


def _changing(endpoint: Endpoint) -> Endpoint:
    return in_sentences(from_a_program(endpoint), _STATUSES)


async def _wish(request: Request, kind: Any) -> tuple[Any, ...]:
    """The arguments of a method. Raises InvalidRequest."""
    body = await body_of(request, most_bytes=MOST_BYTES)
    if kind is None:
        if json_of(body) != {}:
            raise InvalidRequest("This request has no fields: send an empty object.")
        return ()
    if len(body) > _LARGE_BYTES:
        return (await asyncio.to_thread(_read, body, kind),)
    return (_read(body, kind),)


def _read(body: bytes, kind: Any) -> Any:
    return decode(kind, json_of(body))


async def _answer(value: Any) -> Response:
    """A plan may have ten thousand rows: clients of the broker do not wait while they are written down."""
    return Response(await asyncio.to_thread(_written, value), media_type="application/json")


def _written(answer: Any) -> bytes:
    return json.dumps({} if answer is None else encode(answer), separators=(",", ":")).encode()
