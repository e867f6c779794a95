"""HTTP: how far topics are on their way to diskless, start, abort and complete, metrics, and the ruler on the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from strandline.admin.http.listener import bind_http
from strandline.admin.http.migration_json import read_topic, topic_migration
from strandline.admin.http.server import open_http
from strandline.admin.migration_text import cost_of_completing
from strandline.admin.partition_rows import PartitionRow
from strandline.controlplane.values import MigrationState
from strandline.errors import KafkaStorageError, NotController
from strandline.hybrid.switching.status import MigrationPhase, TopicMigrationStatus
from tests.admin.http.switches import COPYING, OLD, ORDERS, SEALING, Switches
from tests.admin.http.test_server import READY, Source

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def switches() -> Switches:
    return Switches(ORDERS, OLD)


@pytest_asyncio.fixture
async def client(switches: Switches) -> AsyncIterator[httpx.AsyncClient]:
    source = Source()
    source.migrations = source.topic_settings = switches
    source.now = replace(READY, migration=switches.figures())
    source.rows = (
        PartitionRow("orders", 0, size=0, tiered_high=599, diskless_start=800),
        PartitionRow("born", 0, size=0, diskless_start=0),
        PartitionRow("tiered", 0, size=0),
    )
    async with (
        open_http(source, CollectorRegistry(), bind_http("127.0.0.1", 0)) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}") as http,
    ):
        yield http


async def test_a_topic_is_described_with_the_keys_that_were_promised(client: httpx.AsyncClient) -> None:
    found = (await client.get("/topics/orders/migration")).json()
    assert list(found)[:3] == ["topic", "state", "partitions"]
    assert list(found["partitions"][0])[:5] == ["partition", "state", "phase", "b0", "tiering_complete"]
    assert [row["phase"] for row in found["partitions"]] == ["COPYING_PREFIX", "SEALING"]
    assert [row["b0"] for row in found["partitions"]] == [800, -1]
    assert found["partitions"][1]["problem"] == "The database <db> is away."
    assert (found["queue_position"], found["uncopied_bytes"]) == (2, 2_000_100)
    assert 30 < found["progress"] < 40, "one partition has copied five of seven megabytes, the other has not begun"
    assert read_topic(found) == ORDERS
    assert read_topic(topic_migration(OLD)) == OLD
    unknown = await client.get("/topics/nowhere/migration")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "There is no topic nowhere.")


async def test_topics_are_listed_by_state(client: httpx.AsyncClient) -> None:
    everything = (await client.get("/migrations")).json()["topics"]
    assert [topic["topic"] for topic in everything] == ["orders", "old"]
    hybrid = (await client.get("/migrations", params={"state": "hybrid"})).json()["topics"]
    assert [topic["topic"] for topic in hybrid] == ["old"]
    refused = await client.get("/migrations", params={"state": "done"})
    assert refused.status_code == 400
    assert "TIERED_ONLY, MIGRATING, HYBRID, DISKLESS_ONLY" in refused.json()["error"]


async def test_start_and_abort_change_the_setting(client: httpx.AsyncClient, switches: Switches) -> None:
    tried = await client.post("/topics/old/migration/start", json={"dry_run": True})
    assert (tried.status_code, tried.json()["dry_run"]) == (200, True)
    started = await client.post("/topics/old/migration/start", headers=JSON)
    assert (started.status_code, started.json()["topic"]) == (202, "old")
    assert switches.asked == [("old", "diskless.enable", "true", True), ("old", "diskless.enable", "true", False)]
    refused = await client.post("/topics/orders/migration/abort", json={})
    assert (refused.status_code, refused.json()) == (409, {"error": "orders cannot go back.", "code": "INVALID_CONFIG"})


async def test_an_abort_of_no_switch_is_refused_and_sets_nothing(client: httpx.AsyncClient, switches: Switches) -> None:
    for state in (None, MigrationState.TIERED_ONLY):
        switches.topics["plain"] = TopicMigrationStatus(topic="plain", state=state)
        refused = await client.post("/topics/plain/migration/abort", json={})
        assert (refused.status_code, refused.json()["code"]) == (409, "INVALID_CONFIG")
        assert "plain is not being switched to diskless" in refused.json()["error"]
    assert not switches.asked


@pytest.mark.parametrize(
    ("error", "status", "of_a_question"),
    [(NotController("Another one."), 503, 503), (KafkaStorageError("The tier is off."), 409, 503)],
)
async def test_errors_say_whether_to_try_again(
    client: httpx.AsyncClient, switches: Switches, error: NotController, status: int, of_a_question: int
) -> None:
    switches.error = error
    answer = await client.post("/topics/orders/migration/start", json={})
    assert (answer.status_code, answer.json()["error"]) == (status, str(error))
    assert (await client.get("/topics/orders/migration")).status_code == of_a_question


async def test_complete_says_first_what_it_may_cost(client: httpx.AsyncClient, switches: Switches) -> None:
    refused = await client.post("/topics/orders/migration/complete", json={})
    assert refused.status_code == 409
    assert "2.0 MB of orders" in refused.json()["error"]
    assert "partition 0: 2.0 MB, partition 1: 100 B" in refused.json()["error"]
    assert not switches.asked
    assert (await client.post("/topics/orders/migration/complete", json={"yes": True})).status_code == 202
    assert switches.asked == [("complete", "orders")]
    assert "costs nothing" in (await client.post("/topics/old/migration/complete", json={})).json()["error"]


def test_a_broker_that_does_not_lead_a_partition_does_not_say_that_completing_costs_nothing() -> None:
    """It knows offsets from the control plane, not bytes."""
    unknown = replace(COPYING, copied_bytes=0, total_bytes=0)
    sentence = cost_of_completing(replace(ORDERS, partitions=(COPYING, replace(unknown, partition=7), SEALING)))
    assert "2.0 MB and more of orders" in sentence
    assert "partition 0: 2.0 MB, partition 7: offsets 600 to 799" in sentence
    assert "Records of orders" in cost_of_completing(replace(ORDERS, partitions=(unknown,)))


@pytest.mark.parametrize("action", ["start", "abort", "complete"])
async def test_pages_in_a_browser_cannot_change_topics(
    client: httpx.AsyncClient, switches: Switches, action: str
) -> None:
    path = f"/topics/old/migration/{action}"
    assert (await client.post(path, content='{"yes": true}')).status_code == 415
    form = await client.post(path, content="{}", headers={"Content-Type": "text/plain"})
    assert (form.status_code, form.json()["error"]) == (
        415,
        "Send this with the header Content-Type: application/json.",
    )
    page = await client.post(path, json={"yes": True}, headers={"Origin": "http://evil.example"})
    assert page.status_code == 403
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = await client.options(path, headers=asked)
    assert not any(name.startswith("access-control") for name in preflight.headers)
    assert (await client.get(path)).status_code == 405
    assert not switches.asked


@pytest.mark.parametrize("body", ["[]", "{", '{"dry_run": 1}', '{"dry-run": true}', " " * 5000])
async def test_bodies_that_mean_something_else_are_refused(
    client: httpx.AsyncClient, switches: Switches, body: str
) -> None:
    answer = await client.post("/topics/old/migration/start", content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert not switches.asked


async def test_metrics_of_the_switch(client: httpx.AsyncClient) -> None:
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families((await client.get("/metrics")).text)
        for sample in family.samples
    }
    assert values["inkless_migration_topics_state", "TIERED_ONLY"] == 4
    assert values["inkless_migration_topics_state", "HYBRID"] == 1
    assert values["inkless_migration_topics_state", "DISKLESS_ONLY"] == 0
    assert values["strandline_migration_partitions", "MIGRATING"] == 1
    assert values["inkless_migration_topic_progress", "old"] == 100
    assert 30 < values["inkless_migration_topic_progress", "orders"] < 40
    reads = [values[f"inkless_hybrid_{tier}_reads_total",] for tier in ("tiered", "local", "diskless")]
    assert reads == [3, 2, 1]
    assert values["inkless_tiered_high_offset", "orders", "0"] == 599
    assert values["inkless_diskless_start_offset", "orders", "0"] == 800
    assert values["inkless_diskless_start_offset", "born", "0"] == 0
    assert ("inkless_tiered_high_offset", "born", "0") not in values, "remote storage has nothing of it"
    assert ("inkless_diskless_start_offset", "tiered", "0") not in values, "it has no diskless part"
    assert values["strandline_migration_stuck_partitions",] == 1
    assert values["strandline_migration_uncopied_bytes",] == 2_000_000
    pause = "strandline_migration_write_pause_seconds"
    assert [values[f"{pause}_bucket", bound] for bound in ("0.005", "0.01", "0.025", "0.05", "+Inf")] == [0, 1, 1, 2, 2]
    assert values[f"{pause}_count",] == 2
    assert values[f"{pause}_sum",] == pytest.approx(0.04)
    assert values["strandline_migration_last_write_pause_seconds", "orders"] == 0.03


async def test_the_page_has_a_ruler_to_scale(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    assert "Topics on their way to diskless" in page
    text = "Offsets 100 to 999: remote 100 to 599 (5.0 MB), local 300 to 799 (5.0 MB), diskless 800 to 999 (2.0 MB)."
    assert f'role="img" aria-label="{text} It became diskless at offset 800."' in page
    bars = re.findall(r'<i class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%">', page)
    assert ("remote", "0.000", "55.556") in bars
    assert ("local", "22.222", "55.556") in bars
    assert ("diskless", "77.778", "22.222") in bars
    assert "MIGRATING, copying prefix" in page
    assert "The database &lt;db&gt; is away." in page
    assert "writes paused for 30 ms" in page
    assert page.index("<h3>orders") < page.index("<h3>old"), "what has a problem comes first"


async def test_many_partitions_do_not_make_the_page_endless(client: httpx.AsyncClient, switches: Switches) -> None:
    rows = tuple(replace(COPYING, partition=number, phase=MigrationPhase.COPYING_PREFIX) for number in range(200))
    large = Switches(replace(ORDERS, partitions=rows), OLD)
    source = Source()
    source.now = replace(READY, migration=large.figures())
    async with (
        open_http(source, CollectorRegistry(), bind_http("127.0.0.1", 0)) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}") as http,
    ):
        page = (await http.get("/")).text
    assert page.count('class="ruler"') == 50
    assert "and 150 partitions more." in page
    assert 'href="/migrations"' in page


async def test_tiers_of_a_hybrid_topic_have_a_diskless_part(client: httpx.AsyncClient) -> None:
    found = (await client.get("/topics/orders/tiers")).json()["partitions"]
    assert [row["partition"] for row in found] == [0, 1]
    assert found[0]["migration"]["diskless_start_offset"] == 800
    assert (found[0]["highest_remote_offset"], found[0]["log_end_offset"]) == (599, 800)


async def test_the_status_has_the_switch_too(client: httpx.AsyncClient) -> None:
    found = (await client.get("/status")).json()["migration"]
    assert found["old"]["progress"] == 100
    assert [row["b0"] for row in found["orders"]["partitions"]] == [800, -1]
