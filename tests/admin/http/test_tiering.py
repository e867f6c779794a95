"""HTTP: the tiering API, and what operators ask of a topic's conversion."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from strandline.admin.http.listener import bind_http
from strandline.admin.http.metrics.exposition import exposition
from strandline.admin.http.server import open_http
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import TieringStatus
from strandline.errors import (
    InvalidRequest,
    KafkaStorageError,
    NotLeaderOrFollower,
    PolicyViolation,
    RequestTimedOut,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.hybrid.conversion.figures import LATENCY_BOUNDS_S
from strandline.hybrid.conversion.progress import ConversionBacklog, ConversionStatus
from tests.admin.http.conversions import CALLS, ORDERS, Conversions
from tests.admin.http.statuses import tiered
from tests.admin.http.test_server import READY, Source, plain


@pytest.fixture
def conversions() -> Conversions:
    return Conversions()


@pytest.fixture
def source(conversions: Conversions) -> Source:
    source = Source()
    source.tiering = conversions
    return source


@pytest_asyncio.fixture
async def client(source: Source) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        open_http(source, CollectorRegistry(), bind_http("127.0.0.1", 0)) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}") as http,
    ):
        yield http


@pytest.mark.parametrize("method", CALLS)
async def test_a_request_reaches_the_broker_and_its_answer_comes_back(
    client: httpx.AsyncClient, conversions: Conversions, method: str
) -> None:
    request, expected = CALLS[method]
    answer = await client.post(f"/tiering/v2/{method}", json={} if request is None else encode(request))
    assert answer.status_code == 200, answer.text
    assert conversions.asked == [request]
    if expected is None:
        assert answer.json() == {}
    else:
        assert decode(type(expected), answer.json()) == expected


async def test_the_api_says_which_versions_it_has(client: httpx.AsyncClient) -> None:
    assert (await client.get("/tiering/v2")).json() == {"api_versions": [2]}
    expected = {
        "error": "This broker speaks version 2 of the tiering API, not v3.",
        "code": "UNSUPPORTED_VERSION",
    }
    for other in (await client.get("/tiering/v3"), await client.post("/tiering/v3/claim-files", json={})):
        assert (other.status_code, other.json()) == (404, expected)
    unknown = await client.post("/tiering/v2/paint", json={})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "UNSUPPORTED_VERSION")
    assert unknown.json()["error"].startswith("The tiering API has no paint. It has describe, claim-files, ")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotLeaderOrFollower("Broker 2 leads it."), 421),
        (InvalidRequest("No."), 400),
        (UnknownTopicOrPartition("There is no topic x."), 404),
        (PolicyViolation("It may not."), 409),
        (KafkaStorageError("The database is away."), 503),
        (RequestTimedOut("Too late."), 503),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else type(value).__name__,
)
async def test_errors_say_what_to_do(
    client: httpx.AsyncClient, conversions: Conversions, error: StrandlineError, status: int
) -> None:
    conversions.error = error
    asked = encode(CALLS["begin-segment"][0])
    for answer in (
        await client.post("/tiering/v2/begin-segment", json=asked),
        await client.get("/topics/orders/tiering"),
        await client.post("/topics/orders/tiering/trigger", json={}),
    ):
        assert (answer.status_code, answer.json()["error"]) == (status, str(error))
        assert answer.json()["code"].isupper()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"[", "The body is no JSON"),
        (b"[" * 100_000, "The body is no JSON"),
        (b"[]", "This is no ClaimFiles of the tiering API: [] is no object."),
        (b'{"claimant": 1}', "This is no ClaimFiles of the tiering API: The field"),
        (b'"' + b"x" * (16 * 1024 * 1024) + b'"', "The body is longer than 16777216 bytes."),
        (b'"' + b"x" * (1024 * 1024) + b'"', "This is no ClaimFiles"),
    ],
    ids=["no JSON", "deep", "a list", "a wrong field", "too long", "long"],
)
async def test_a_body_that_is_no_request_is_refused_with_a_sentence(
    client: httpx.AsyncClient, conversions: Conversions, body: bytes, sentence: str
) -> None:
    answer = await client.post("/tiering/v2/claim-files", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(sentence)
    assert not conversions.asked


async def test_how_far_topics_are(client: httpx.AsyncClient) -> None:
    (every,) = (await client.get("/tiering")).json()["topics"]
    one = (await client.get("/topics/orders/tiering")).json()
    assert decode(TieringStatus, every) == decode(TieringStatus, one) == ORDERS
    assert list(one)[:8] == [
        "topic_name",
        "tiered_high_offset",
        "diskless_start_offset",
        "high_watermark",
        "pending_batches_count",
        "pending_split_files_count",
        "eligible_bytes",
        "is_paused",
    ]
    unknown = await client.get("/topics/nowhere/tiering")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "There is no topic nowhere.")
    classic = await client.get("/topics/tides/tiering")
    assert (classic.status_code, classic.json()["error"]) == (400, "Topic tides is not diskless.")
    new = await client.get("/topics/new/tiering")
    assert (new.status_code, new.json()["error"]) == (503, "Topic new has no diskless log yet. Try again.")


async def test_pause_resume_and_trigger(client: httpx.AsyncClient, conversions: Conversions) -> None:
    assert (await client.post("/topics/orders/tiering/pause", json={})).json()["is_paused"] is True
    assert (await client.post("/topics/orders/tiering/resume", json={})).json()["is_paused"] is False
    assert (await client.post("/topics/orders/tiering/trigger", json={})).json()["triggered_at_ms"] == 1000
    assert conversions.asked == [("orders", True), ("orders", False), "orders"]


@pytest.mark.parametrize(
    "path", ["/topics/orders/tiering/pause", "/topics/orders/tiering/trigger", "/tiering/v2/describe"]
)
async def test_pages_in_a_browser_cannot_ask_for_changes(
    client: httpx.AsyncClient, conversions: Conversions, path: str
) -> None:
    assert (await client.post(path, content="{}", headers={"Content-Type": "text/plain"})).status_code == 415
    assert (await client.post(path, json={}, headers={"Origin": "http://evil.example"})).status_code == 403
    assert (await client.get(path)).status_code == 405
    assert not conversions.asked


CONVERSION = ConversionStatus(
    batches_split=7,
    segments_created=2,
    segments_aborted=1,
    failing=3,
    split_latency=((1, 0, 2, *[0] * (len(LATENCY_BOUNDS_S) - 2)), 1.25),
    topics={
        "orders": ConversionBacklog(
            pending_split=12,
            pending_merge=5,
            eligible_bytes=4_000_000,
            lag_bytes=9_000_000,
            is_paused=True,
            boundary=600,
            high_watermark=1000,
        )
    },
)


async def test_the_eight_metrics_of_the_design() -> None:
    source = Source()
    source.now = replace(READY, tiering=CONVERSION)
    text = (await exposition(source, CollectorRegistry())).decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(("inkless_tiering_", "strandline_tiering_"))
    }
    assert found["inkless_tiering_batches_split_total",] == 7
    assert found["inkless_tiering_segments_created_total",] == 2
    assert found["inkless_tiering_batches_pending_split", "orders"] == 12
    assert found["inkless_tiering_batches_pending_merge", "orders"] == 5
    assert found["inkless_tiering_eligible_bytes", "orders"] == 4_000_000
    assert found["inkless_tiering_lag_bytes", "orders"] == 9_000_000
    assert found["inkless_tiering_split_latency_bucket", "0.1"] == 1
    assert found["inkless_tiering_split_latency_bucket", "0.5"] == 3
    assert found["inkless_tiering_split_latency_bucket", "+Inf"] == 3
    assert found["inkless_tiering_split_latency_sum",] == 1.25
    assert found["inkless_tiering_merge_latency_count",] == 0
    assert found["strandline_tiering_paused", "orders"] == 1
    assert found["strandline_tiering_segments_aborted_total",] == 1
    assert found["strandline_tiering_failing",] == 3


async def test_the_page_and_the_status_show_topics_on_a_broker_with_tiered_storage(
    client: httpx.AsyncClient, source: Source
) -> None:
    source.now = replace(READY, tiering=CONVERSION)
    assert "Conversion of diskless topics" not in (await client.get("/")).text
    source.now = replace(source.now, tiered=tiered(url="file:///remote"))
    page = plain(await client.get("/"))
    row = ("orders", "paused", "600", "1000", "12", "5", "9.0 MB")
    assert "".join(f"<td>{cell}</td>" for cell in row) in page
    assert (await client.get("/status")).json()["tiering"]["orders"]["pending_split"] == 12
