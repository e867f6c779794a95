"""The rules of subscriptions and pushes, on virtual time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

import pytest

from strandline.admin_errors import TelemetryTooLarge, ThrottlingQuotaExceeded, UnknownSubscriptionId
from strandline.clock import SystemIds
from strandline.errors import InvalidRecord, InvalidRequest, StrandlineError, UnsupportedCompressionType
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from strandline.model import ZERO_UUID
from strandline.records.codecs import Codec, compress
from strandline.server.telemetry import ClientTelemetry
from strandline.server.telemetry import figures as figures_module
from strandline.server.telemetry.clients import Push
from strandline.server.telemetry.subscriptions import Subscription
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster
from tests.server.telemetry.payloads import DELTA, metric, metrics_data, point

PAYLOAD = metrics_data([metric("org.apache.kafka.producer.x", point(1.5, {"topic": "t"}))])
APP = {"client_id": "app", "client_software_name": "librdkafka"}
BATCH = {"client_id": "batch", "client_software_name": None}
MAX_BYTES = 1000


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with open_cluster() as opened:
        yield opened


@pytest.fixture
def telemetry(cluster: Cluster) -> ClientTelemetry:
    return ClientTelemetry(cluster.loader, cluster.clock, SystemIds(), MAX_BYTES)


def move(cluster: Cluster, seconds: float) -> None:
    assert isinstance(cluster.clock, VirtualClock)
    cluster.clock.move(seconds)


async def subscribe(cluster: Cluster, name: str, **settings: str) -> None:
    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, name)
    changes = [ConfigChange(key.replace("_", "."), ConfigOperation.SET, value) for key, value in settings.items()]
    (answer,) = await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=changes)])
    assert answer is None


def push_of(
    instance_id: UUID, subscription: Subscription, payload: bytes = PAYLOAD, codec: int = 0, *, is_last: bool = False
) -> Push:
    return Push(
        instance_id=instance_id,
        subscription_id=subscription.id,
        is_last=is_last,
        compression=codec,
        payload=payload,
    )


def shown(telemetry: ClientTelemetry) -> dict[tuple[str, str, str], float]:
    return {(s.client_id, s.metric, s.attributes): s.value for s in telemetry.status().samples}


async def test_a_client_gets_the_sum_of_the_subscriptions_that_match_it(
    cluster: Cluster, telemetry: ClientTelemetry
) -> None:
    await subscribe(cluster, "one", metrics="a,b", interval_ms="60000")
    await subscribe(cluster, "two", metrics="b,c", interval_ms="5000", match="client_id=a.*,client_software_name=lib.*")
    _, app = telemetry.subscribe(ZERO_UUID, APP)
    _, batch = telemetry.subscribe(ZERO_UUID, BATCH)
    assert (app.metrics, app.interval_ms) == (("a", "b", "c"), 5000)
    assert (batch.metrics, batch.interval_ms) == (("a", "b"), 60000)
    await subscribe(cluster, "all", metrics="*,z", match="client_id=batch")
    _, batch = telemetry.subscribe(ZERO_UUID, BATCH)
    assert batch.metrics == ("*",)


async def test_without_a_subscription_there_is_nothing_to_push(telemetry: ClientTelemetry) -> None:
    instance_id, nothing = telemetry.subscribe(ZERO_UUID, APP)
    assert instance_id != ZERO_UUID
    assert (nothing.metrics, nothing.interval_ms) == ((), 300_000)
    assert -(2**31) <= nothing.id < 2**31


async def test_the_id_that_a_new_client_gets_can_be_matched(cluster: Cluster, telemetry: ClientTelemetry) -> None:
    await subscribe(cluster, "new", metrics="*", match="client_instance_id=.{22}")
    _, subscription = telemetry.subscribe(ZERO_UUID, APP)
    assert subscription.metrics == ("*",)


@pytest.mark.parametrize("codec", Codec)
async def test_what_is_pushed_is_shown(cluster: Cluster, telemetry: ClientTelemetry, codec: Codec) -> None:
    await subscribe(cluster, "all", metrics="*")
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    await telemetry.push(push_of(instance_id, subscription, compress(codec, PAYLOAD), codec), APP, "app")
    assert shown(telemetry) == {("app", "org.apache.kafka.producer.x", "topic=t"): 1.5}
    assert (telemetry.status().instances, telemetry.status().pushes) == (1, {"accepted": 1})


async def test_differences_are_summed_up_and_what_is_left_out_stays(
    cluster: Cluster, telemetry: ClientTelemetry
) -> None:
    await subscribe(cluster, "all", metrics="*", interval_ms="1000")
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    total = metric("total", point(3), temporality=DELTA)
    for payload in (metrics_data([total, metric("rate", point(9.0))]), metrics_data([total])):
        await telemetry.push(push_of(instance_id, subscription, payload), APP, "app")
        move(cluster, 1.0)
    assert shown(telemetry) == {("app", "total", ""): 6.0, ("app", "rate", ""): 9.0}


async def test_who_comes_too_early_has_to_wait(cluster: Cluster, telemetry: ClientTelemetry) -> None:
    await subscribe(cluster, "all", metrics="*", interval_ms="10000")
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    with pytest.raises(ThrottlingQuotaExceeded):
        telemetry.subscribe(instance_id, APP)
    await telemetry.push(push_of(instance_id, subscription), APP, "app")  # the first push may come at once
    move(cluster, 9.0)
    with pytest.raises(ThrottlingQuotaExceeded):
        await telemetry.push(push_of(instance_id, subscription), APP, "app")
    move(cluster, 1.0)
    await telemetry.push(push_of(instance_id, subscription), APP, "app")
    await telemetry.push(push_of(instance_id, subscription, is_last=True), APP, "app")  # the last one, too
    with pytest.raises(InvalidRequest):
        await telemetry.push(push_of(instance_id, subscription, is_last=True), APP, "app")


async def test_a_changed_subscription_is_asked_for_again_at_once(cluster: Cluster, telemetry: ClientTelemetry) -> None:
    await subscribe(cluster, "all", metrics="*")
    instance_id, before = telemetry.subscribe(ZERO_UUID, APP)
    await subscribe(cluster, "all", metrics="only.this")
    with pytest.raises(UnknownSubscriptionId):
        await telemetry.push(push_of(instance_id, before), APP, "app")
    same_id, after = telemetry.subscribe(instance_id, APP)
    assert (same_id, after.metrics) == (instance_id, ("only.this",))
    assert after.id != before.id
    await telemetry.push(push_of(instance_id, after), APP, "app")
    assert telemetry.status().pushes == {"UnknownSubscriptionId": 1, "accepted": 1}


@pytest.mark.parametrize(
    ("payload", "codec", "error"),
    [
        (bytes(MAX_BYTES + 1), 0, TelemetryTooLarge),
        (compress(Codec.ZSTD, bytes(16 * MAX_BYTES + 1)), Codec.ZSTD, InvalidRecord),
        (b"\xff\xff", Codec.GZIP, InvalidRecord),
        (b"\x0a", 0, InvalidRecord),
        (PAYLOAD, 5, UnsupportedCompressionType),
        (PAYLOAD, -1, UnsupportedCompressionType),
    ],
)
async def test_payloads_that_are_refused(
    telemetry: ClientTelemetry, payload: bytes, codec: int, error: type[StrandlineError]
) -> None:
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    with pytest.raises(error):
        await telemetry.push(push_of(instance_id, subscription, payload, codec), APP, "app")
    assert shown(telemetry) == {}


async def test_the_limit_is_about_what_is_sent(telemetry: ClientTelemetry) -> None:
    """A client whose metrics were refused as a broken record would never push again."""
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    payload = metrics_data(metric(f"org.apache.kafka.producer.{number}", point(1.0)) for number in range(100))
    packed = compress(Codec.ZSTD, payload)
    assert len(packed) < MAX_BYTES < len(payload)
    await telemetry.push(push_of(instance_id, subscription, packed, Codec.ZSTD), APP, "app")
    assert len(shown(telemetry)) == 100


async def test_an_id_that_no_client_has_is_refused(telemetry: ClientTelemetry) -> None:
    _, subscription = telemetry.subscribe(ZERO_UUID, APP)
    with pytest.raises(InvalidRequest):
        await telemetry.push(push_of(ZERO_UUID, subscription), APP, "app")


async def test_silent_clients_are_forgotten(cluster: Cluster, telemetry: ClientTelemetry) -> None:
    await subscribe(cluster, "all", metrics="*", interval_ms="30000")
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    await telemetry.push(push_of(instance_id, subscription), APP, "app")
    move(cluster, 89.0)
    assert len(telemetry.status().samples) == 1
    move(cluster, 1.0)
    status = telemetry.status()
    assert (status.instances, status.samples) == (0, ())


async def test_a_client_that_has_gone_is_shown_for_a_minute_more(cluster: Cluster, telemetry: ClientTelemetry) -> None:
    """Its place is needed: clients that live for seconds would keep others out for three intervals of up to an hour."""
    await subscribe(cluster, "all", metrics="*", interval_ms="3600000")
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, APP)
    await telemetry.push(push_of(instance_id, subscription, is_last=True), APP, "app")
    move(cluster, 59.0)
    assert len(telemetry.status().samples) == 1
    move(cluster, 1.0)
    assert telemetry.status().samples == ()


async def test_the_names_of_the_numbers_of_a_client_are_bounded_together(
    cluster: Cluster, telemetry: ClientTelemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_module, "MOST_NAME_BYTES", 30)
    await subscribe(cluster, "all", metrics="*", interval_ms="1000")
    client: Mapping[str, str | None] = {"client_id": "x" * 5000}
    instance_id, subscription = telemetry.subscribe(ZERO_UUID, client)
    for first in ("a", "b"):
        payload = metrics_data([metric("m" * 10, point(1.0, {"n": first * 5}), point(1.0, {"n": "c" * 5}))])
        await telemetry.push(push_of(instance_id, subscription, payload), client, "x" * 5000)
        move(cluster, 1.0)
    status = telemetry.status()
    assert [sample.attributes for sample in status.samples] == ["n=bbbbb"]
    assert (status.dropped_samples, len(status.samples[0].client_id)) == (2, 512)


async def test_only_so_many_clients_and_numbers_are_shown(
    cluster: Cluster, telemetry: ClientTelemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_module, "MOST_CLIENTS", 2)
    monkeypatch.setattr(figures_module, "MOST_SAMPLES", 3)
    payload = metrics_data([metric("m", *(point(1.0, {"n": str(number)}) for number in range(4)))])
    for client_id in ("a", "b", "c"):
        client: Mapping[str, str | None] = {"client_id": client_id}
        instance_id, subscription = telemetry.subscribe(ZERO_UUID, client)
        await telemetry.push(push_of(instance_id, subscription, payload), client, client_id)
    status = telemetry.status()
    assert {sample.client_id for sample in status.samples} == {"a", "b"}
    assert (len(status.samples), status.dropped_samples) == (6, 1 + 1 + 4)
    assert not any(math.isnan(sample.value) for sample in status.samples)
