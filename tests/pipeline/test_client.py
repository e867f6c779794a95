"""The client of the tiering API against a real broker: what it finds there, and when the broker is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka.admin import AdminClient

import strandline.pipeline.client
from strandline.client import CommandFailed, HttpRefused, HttpUnreachable, Json
from strandline.conversion_api.values import (
    API_VERSION,
    BeginSegment,
    ClaimFiles,
    ListMerges,
    PlanRead,
    RenewClaims,
    TieringStatus,
)
from strandline.model import TopicIdPartition, TopicPartition
from strandline.pipeline.client import BrokersUnavailable, RequestRefused, TieringClient
from tests.admin.commands.conftest import Command, command
from tests.admin.http.scrapes import scrape
from tests.broker import BrokerProcess, free_port, running_broker
from tests.clients.tiering import QUICK, alter, create, numbered, produce, read, values
from tests.pipeline.world import convert
from tests.waiting import wait_until

__all__ = ["command"]

pytestmark = pytest.mark.timeout(120)

SECRET = {
    "inkless.storage.aws.access.key.id": "AKIA",
    "inkless.storage.aws.secret.access.key": "hush",
}
CLAIM = ClaimFiles(claimant="me", max_files=10, max_rows=100, claim_ms=60_000)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("tiering") / "data", {**QUICK, **SECRET}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        create(admin, "orders", {"diskless.enable": "true"})
        create(admin, "tides", {})
        yield running


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[TieringClient]:
    with TieringClient(broker.bootstrap, timeout_s=20.0) as opened:
        yield opened


def status_of(client: TieringClient, topic: str) -> TieringStatus:
    (found,) = client.statuses([topic])
    return found


def test_a_cluster_describes_itself_without_its_secrets(client: TieringClient, broker: BrokerProcess) -> None:
    found = client.describe()
    assert (found.api_version, found.broker_id) == (API_VERSION, 1)
    assert found.store_settings["strandline.objects.url"] == f"file://{broker.data_dir}/objects"
    assert found.store_settings["rsm.config.url"] == f"file://{broker.data_dir}/remote"
    assert not {"AKIA", "hush"} & set(found.store_settings.values())
    assert (found.pipeline.splitter_interval_ms, found.pipeline.max_segment_bytes) == (60_000, 1024**3)


def test_brokers_are_asked_directly_whatever_proxy_the_environment_names(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with TieringClient(broker.bootstrap, timeout_s=5.0) as client:
        assert client.describe().broker_id == 1


def test_settings_that_are_changed_while_the_broker_runs_count_at_once(
    client: TieringClient, broker: BrokerProcess, command: Command
) -> None:
    words = ("configs", "alter", "--broker", "all", "--set", "inkless.tiering.max.batches.per.run=77")
    assert command(*words, "--bootstrap", broker.bootstrap).status == 0
    wait_until(lambda: client.describe().pipeline.max_batches_per_run == 77, what="the broker to follow the setting")


def test_conversion_from_trigger_to_status_and_metrics(client: TieringClient, broker: BrokerProcess) -> None:
    produce(broker, "orders", numbered(0, 30))
    before = status_of(client, "orders")
    assert (before.high_watermark, before.diskless_start_offset, before.tiered_high_offset) == (30, 0, -1)
    assert (before.eligible_bytes, before.pending_batches_count) == (0, 0), "nothing is old enough"
    assert before.lag_bytes > 30_000
    triggered = client.trigger("orders")
    assert triggered.triggered_at_ms is not None
    assert triggered.eligible_bytes == before.lag_bytes
    assert triggered.pending_batches_count > 0
    convert(broker.bootstrap, "orders")
    after = status_of(client, "orders")
    assert (after.diskless_start_offset, after.tiered_high_offset, after.lag_bytes) == (30, 29, 0)
    assert (after.pending_batches_count, after.pending_merge_batches_count, after.pending_split_files_count) == (
        0,
        0,
        0,
    )
    assert values(read(broker, "orders", 30)) == list(range(30))
    assert after in client.statuses()

    found = scrape(broker)
    assert found["inkless_tiering_segments_created_total",] >= 1
    assert found["inkless_tiering_batches_split_total",] >= 1
    assert found["inkless_tiering_split_latency_count",] >= 1
    assert found["inkless_tiering_merge_latency_count",] >= 1
    assert ("inkless_tiering_lag_bytes", "orders") in found


def test_a_paused_topic_is_left_alone_until_it_is_resumed(client: TieringClient, broker: BrokerProcess) -> None:
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), "paused", {"diskless.enable": "true"})
    produce(broker, "paused", numbered(0, 10))
    assert client.pause("paused").is_paused
    assert client.pause("paused").is_paused, "it may be repeated"
    client.trigger("paused")
    assert not convert(broker.bootstrap, "paused").segments
    assert status_of(client, "paused").is_paused
    assert not client.resume("paused").is_paused
    assert convert(broker.bootstrap, "paused").segments
    assert status_of(client, "paused").diskless_start_offset == 10


def test_claims_are_the_claimants_and_may_be_asked_for_again(client: TieringClient, broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, "claimed", {"diskless.enable": "true", "local.retention.ms": "0"})
    produce(broker, "claimed", numbered(0, 10))
    mine = ClaimFiles(claimant="a", max_files=10, max_rows=100, claim_ms=60_000, topics=("claimed",))
    first = wait_until(lambda: client.claim_files(mine).files, what="records to be old enough")
    assert client.claim_files(mine).files[0].object_key == first[0].object_key
    theirs = ClaimFiles(claimant="b", max_files=10, max_rows=100, claim_ms=60_000, topics=("claimed",))
    assert client.claim_files(theirs).files == ()
    assert client.renew_claims(RenewClaims(claimant="a", claim_ms=60_000)).files >= 1
    assert client.renew_claims(RenewClaims(claimant="b", claim_ms=60_000)).files == 0
    alter(admin, "claimed", {"local.retention.ms": "-1"})


@pytest.mark.parametrize(
    ("topic", "code", "sentence"),
    [
        ("tides", "INVALID_REQUEST", "Topic tides is not diskless: only records of diskless topics are converted."),
        ("nowhere", "UNKNOWN_TOPIC_OR_PARTITION", "There is no topic nowhere."),
        ("no where?", "UNKNOWN_TOPIC_OR_PARTITION", "There is no topic no where?."),
    ],
)
def test_what_is_refused_is_refused_at_once_with_the_brokers_sentence(
    client: TieringClient, topic: str, code: str, sentence: str
) -> None:
    calls = (client.pause, client.resume, client.trigger, lambda name: client.statuses([name]))
    for call in calls:
        with pytest.raises(RequestRefused) as refused:
            call(topic)
        assert refused.value.code == code
        assert str(refused.value).startswith(sentence)


def test_a_partition_that_is_not_there_is_refused(client: TieringClient) -> None:
    with pytest.raises(RequestRefused, match=r"There is no topic nowhere\.") as refused:
        client.plan_read(PlanRead(topic="nowhere", partition=0))
    assert refused.value.code == "UNKNOWN_TOPIC_OR_PARTITION"
    gone = TopicIdPartition(UUID(int=5), TopicPartition("orders", 0))
    with pytest.raises(RequestRefused, match="its topic was deleted"):
        client.begin_segment(BeginSegment(claimant="me", partition=gone, base_offset=0, last_offset=1, claim_ms=1000))


def test_a_request_that_contradicts_itself_is_refused(client: TieringClient) -> None:
    with pytest.raises(RequestRefused, match="have to be greater than 0") as refused:
        client.claim_files(ClaimFiles(claimant="me", max_files=0, max_rows=1, claim_ms=1))
    assert refused.value.code == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/tiering/v3", r"This broker speaks version 2 of the tiering API, not v3\."),
        ("/before-there-was-one", r"Broker 1 does not know version 2 of the tiering API\. Use the same version"),
    ],
)
def test_another_version_is_refused_with_a_sentence(
    client: TieringClient, monkeypatch: pytest.MonkeyPatch, path: str, sentence: str
) -> None:
    monkeypatch.setattr(strandline.pipeline.client, "_API", path)
    with pytest.raises(RequestRefused, match=sentence) as refused:
        client.claim_files(CLAIM)
    assert refused.value.code == "UNSUPPORTED_VERSION"


@pytest.mark.parametrize("bootstrap", ["", " , ", "nonsense", "host:port"])
def test_a_bootstrap_that_is_no_address_is_refused_before_anybody_waits(bootstrap: str) -> None:
    with pytest.raises(CommandFailed, match="--bootstrap"):
        TieringClient(bootstrap)


def test_a_broker_that_is_away_is_named_in_a_sentence() -> None:
    address = f"127.0.0.1:{free_port()}"
    with (
        TieringClient(address, timeout_s=0.3) as client,
        pytest.raises(
            BrokersUnavailable, match=f"claim WAL objects within 0.3 s: No Kafka broker answers at {address}"
        ),
    ):
        client.claim_files(CLAIM)


def test_what_a_broker_has_said_is_told_although_the_last_attempt_had_too_little_time(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([HttpRefused("The storage is away.", reason="The storage is away.", status=503, code="")])

    def answer(*arguments: object, **named: object) -> Json:
        for error in answers:
            raise error
        raise HttpUnreachable("Broker 1 does not answer: timed out.") from TimeoutError()

    monkeypatch.setattr("strandline.pipeline.client.exchange", answer)
    with (
        TieringClient(broker.bootstrap, timeout_s=1) as client,
        pytest.raises(BrokersUnavailable, match="within 1 s: The storage is away"),
    ):
        client.list_merges(ListMerges())


def test_a_client_outlives_its_broker_and_finds_another_one(tmp_path: Path) -> None:
    """One client, several threads, addresses of which one never answers: requests wait for the broker to be back."""
    with running_broker(tmp_path / "data", QUICK) as broker:
        bootstrap = f"127.0.0.1:{free_port()},{broker.bootstrap}"
        with TieringClient(bootstrap, timeout_s=60.0) as client, ThreadPoolExecutor(4) as threads:
            described = client.describe()
            broker.kill()
            waiting = [threads.submit(client.describe) for _ in range(4)]
            with pytest.raises(BrokersUnavailable), TieringClient(bootstrap, timeout_s=0.2) as hasty:
                hasty.describe()
            broker.start()
            assert [one.result(60.0) for one in waiting] == [described] * 4


def test_who_waits_for_a_broker_gives_up_when_the_client_is_closed() -> None:
    client = TieringClient(f"127.0.0.1:{free_port()}", timeout_s=3600.0)
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            client.describe()
        except BrokersUnavailable as failure:
            failures.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    client.close()
    thread.join(30.0)
    assert not thread.is_alive()
    assert len(failures) == 1
