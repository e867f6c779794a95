"""Quotas of clients: what may be stored, and what a filter finds."""

from __future__ import annotations

import math

import pytest

from strandline.errors import InvalidRequest, StrandlineError, UnsupportedVersion
from strandline.metadata import QuotaAlteration, QuotaFilterPart, matching_quotas
from strandline.metadata.administered import CLIENT_ID, IP, USER, quota_entity
from strandline.metadata.plans.quotas import QuotaMatch
from tests.metadata.cluster import Cluster, open_cluster

ALICE = quota_entity({USER: "alice"})
ALICE_APP = quota_entity({USER: "alice", CLIENT_ID: "app"})
ANY_USER = quota_entity({USER: None})
HOST = quota_entity({IP: "127.0.0.1"})
PRODUCE, PERCENTAGE, CONNECTIONS = "producer_byte_rate", "request_percentage", "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]


async def alter(
    cluster: Cluster, entity: Entity, *changes: tuple[str, float | None], validate_only: bool = False
) -> StrandlineError | None:
    wish = QuotaAlteration(entity=entity, changes=changes)
    (answer,) = await cluster.controller.alter_quotas([wish], validate_only)
    return answer


async def test_quotas_are_set_changed_and_removed() -> None:
    async with open_cluster() as cluster:
        assert await alter(cluster, ALICE, (PRODUCE, 1024.0), (PERCENTAGE, 12.5)) is None
        assert cluster.image.administered.quotas == {ALICE: {PRODUCE: 1024.0, PERCENTAGE: 12.5}}
        assert await alter(cluster, ALICE, (PRODUCE, None), (PERCENTAGE, 50.0)) is None
        assert cluster.image.administered.quotas == {ALICE: {PERCENTAGE: 50.0}}
        assert await alter(cluster, ALICE, (PERCENTAGE, None)) is None
        assert cluster.image.administered.quotas == {}


async def test_what_changes_nothing_writes_nothing() -> None:
    async with open_cluster() as cluster:
        await alter(cluster, ALICE, (PRODUCE, 1024.0))
        offset = cluster.image.offset
        assert await alter(cluster, ALICE, (PRODUCE, 1024.0)) is None
        assert await alter(cluster, ALICE, ("no_such_quota", None)) is None  # nothing to remove, as in Kafka
        assert await alter(cluster, ALICE_APP, (PRODUCE, 1.0), validate_only=True) is None
        assert cluster.image.offset == offset


async def test_the_types_of_an_entity_have_no_order() -> None:
    async with open_cluster() as cluster:
        await alter(cluster, ((USER, "alice"), (CLIENT_ID, "app")), (PRODUCE, 1.0))
        await alter(cluster, ((CLIENT_ID, "app"), (USER, "alice")), (PRODUCE, 2.0))
        assert cluster.image.administered.quotas == {ALICE_APP: {PRODUCE: 2.0}}


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ((), PRODUCE, 1.0),
        ((("group", "g"),), PRODUCE, 1.0),
        (((USER, ""),), PRODUCE, 1.0),
        (((USER, "a"), (USER, "b")), PRODUCE, 1.0),
        (((USER, "a"), (IP, "127.0.0.1")), PRODUCE, 1.0),
        (((IP, "127.0.0.1"),), PRODUCE, 1.0),
        (ALICE, CONNECTIONS, 1.0),
        (ALICE, "no_such_quota", 1.0),
        (ALICE, PRODUCE, 0.0),
        (ALICE, PRODUCE, -1.0),
        (ALICE, PRODUCE, 1.5),
        (ALICE, PRODUCE, 2.0**64),
        (ALICE, PERCENTAGE, math.nan),
        (ALICE, PERCENTAGE, math.inf),
        (HOST, CONNECTIONS, 2.0**31),
    ],
)
async def test_illegal_quotas_are_refused(entity: Entity, key: str, value: float) -> None:
    async with open_cluster() as cluster:
        assert isinstance(await alter(cluster, entity, (key, value)), InvalidRequest)
        assert cluster.image.administered.quotas == {}


async def test_an_entity_is_changed_as_a_whole_or_not_at_all_and_does_not_stop_the_others() -> None:
    async with open_cluster() as cluster:
        wishes = [
            QuotaAlteration(entity=ALICE, changes=[(PRODUCE, 1.0), (PERCENTAGE, -1.0)]),
            QuotaAlteration(entity=HOST, changes=[(CONNECTIONS, 7.0)]),
            QuotaAlteration(entity=ANY_USER, changes=[(PRODUCE, 1.0), (PRODUCE, 2.0)]),
        ]
        answers = await cluster.controller.alter_quotas(wishes)
        assert [type(answer) for answer in answers] == [InvalidRequest, type(None), InvalidRequest]
        assert cluster.image.administered.quotas == {HOST: {CONNECTIONS: 7.0}}


async def test_an_entity_that_is_named_twice_is_not_changed_and_does_not_stop_the_others() -> None:
    async with open_cluster() as cluster:
        wishes = [
            QuotaAlteration(entity=ALICE_APP, changes=[(PRODUCE, 1.0)]),
            QuotaAlteration(entity=HOST, changes=[(CONNECTIONS, 7.0)]),
            QuotaAlteration(entity=ALICE_APP[::-1], changes=[(PERCENTAGE, 2.0)]),
        ]
        answers = await cluster.controller.alter_quotas(wishes)
        assert [type(answer) for answer in answers] == [InvalidRequest, type(None), InvalidRequest]
        assert cluster.image.administered.quotas == {HOST: {CONNECTIONS: 7.0}}


async def test_the_largest_whole_number_is_a_legal_quota() -> None:
    """Tools set Long.MAX_VALUE for no limit, and as a floating-point number that is a little more."""
    async with open_cluster() as cluster:
        assert await alter(cluster, ALICE, (PRODUCE, float(2**63 - 1))) is None
        assert await alter(cluster, HOST, (CONNECTIONS, float(2**31 - 1))) is None
        assert cluster.image.administered.quotas == {ALICE: {PRODUCE: 2.0**63}, HOST: {CONNECTIONS: 2.0**31 - 1}}


def part(kind: str, match: int, name: str | None = None) -> QuotaFilterPart:
    return QuotaFilterPart(type=kind, match=match, name=name)


EVERYTHING = {ALICE, ALICE_APP, ANY_USER, HOST}


@pytest.mark.parametrize(
    ("parts", "strict", "found"),
    [
        ([], False, EVERYTHING),
        ([], True, set()),
        ([part(USER, QuotaMatch.ANY)], False, {ALICE, ALICE_APP, ANY_USER}),
        ([part(USER, QuotaMatch.ANY)], True, {ALICE, ANY_USER}),
        ([part(USER, QuotaMatch.EXACT, "alice")], False, {ALICE, ALICE_APP}),
        ([part(USER, QuotaMatch.EXACT, "alice")], True, {ALICE}),
        ([part(USER, QuotaMatch.DEFAULT)], True, {ANY_USER}),
        ([part(USER, QuotaMatch.ANY), part(CLIENT_ID, QuotaMatch.EXACT, "app")], True, {ALICE_APP}),
        ([part(USER, QuotaMatch.EXACT, "bob")], False, set()),
        ([part(IP, QuotaMatch.ANY)], True, {HOST}),
    ],
)
async def test_filters(parts: list[QuotaFilterPart], strict: bool, found: set[object]) -> None:
    async with open_cluster() as cluster:
        for entity in (ALICE, ALICE_APP, ANY_USER):
            await alter(cluster, entity, (PRODUCE, 1.0))
        await alter(cluster, HOST, (CONNECTIONS, 1.0))
        assert set(matching_quotas(cluster.image, parts, strict=strict)) == found


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([part("", QuotaMatch.ANY)], InvalidRequest),
        ([part("group", QuotaMatch.ANY)], UnsupportedVersion),
        ([part(USER, 3)], InvalidRequest),
        ([part(USER, QuotaMatch.EXACT)], InvalidRequest),
        ([part(USER, QuotaMatch.DEFAULT, "alice")], InvalidRequest),
        ([part(USER, QuotaMatch.ANY), part(USER, QuotaMatch.DEFAULT)], InvalidRequest),
        ([part(USER, QuotaMatch.ANY), part(IP, QuotaMatch.ANY)], InvalidRequest),
    ],
)
async def test_filters_that_make_no_sense(parts: list[QuotaFilterPart], error: type[StrandlineError]) -> None:
    async with open_cluster() as cluster:
        with pytest.raises(error):
            matching_quotas(cluster.image, parts, strict=False)
