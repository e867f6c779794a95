"""The switch of topics to diskless over HTTP: how far it is, and start, abort and complete."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from strandline.admin.http.answers import TRY_AGAIN, body_of, from_a_program, in_sentences, json_of
from strandline.admin.http.migration_json import topic_migration
from strandline.admin.migration_text import cost_of_completing, nothing_to_abort
from strandline.admin.status import BrokerSource
from strandline.controlplane import MigrationState
from strandline.errors import InvalidConfig, InvalidRequest
from strandline.wire.errors import ErrorCode

_FLAG: Final = "diskless.enable"
_MOST_BYTES: Final = 4096
_OF_A_QUESTION: Final = {ErrorCode.KAFKA_STORAGE_ERROR: TRY_AGAIN}
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
        topic = request.path_params["topic"]
        if not (await source.migrations.topic_status(topic)).is_wanted:
            raise InvalidConfig(nothing_to_abort(topic))
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
        Route("/migrations", in_sentences(every, _OF_A_QUESTION)),
        Route(path, in_sentences(one, _OF_A_QUESTION)),
        *(
            Route(f"{path}/{action.__name__}", in_sentences(from_a_program(action)), methods=["POST"])
            for action in (start, abort, complete)
        ),
    ]


def _states(asked: list[str]) -> list[MigrationState]:
    try:
        return [MigrationState(word.upper()) for text in asked for word in text.split(",")]
    except ValueError as error:
        raise InvalidRequest(f"{error}: state has to be one of {_STATES}.") from error


async def _wishes(request: Request, *names: str) -> dict[str, bool]:
    """The booleans of a body that is a JSON object or empty. Raises InvalidRequest."""
    found = json_of(await body_of(request, most_bytes=_MOST_BYTES))
    if not isinstance(found, dict) or not found.keys() <= set(names):
        raise InvalidRequest(f"The body has to be a JSON object with nothing but {', '.join(names)}.")
    wishes = {name: found.get(name, False) for name in names}
    if not all(isinstance(value, bool) for value in wishes.values()):
        raise InvalidRequest(f"{', '.join(names)} has to be true or false.")
    return wishes
