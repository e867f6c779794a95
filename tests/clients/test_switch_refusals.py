"""A topic that cannot become diskless: a real admin client gets a sentence, and topic and clients are as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, SECONDS, TIERED, alter, create, numbered, produce
from tests.crash.tiered_store import s3_settings
from tests.link import Link
from tests.s3 import S3, s3, s3_link, s3_url
from tests.waiting import wait_until

__all__ = ["s3", "s3_link", "s3_url"]

kafka_admin: Any = confluent_kafka.admin
ON = {"diskless.enable": "true"}
STATE = "diskless.migration.state"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("switch") / "data", QUICK) as broker:
        yield broker


def admin_of(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(SECONDS)
    return {name: entry.value for name, entry in entries.items()}


def refusal(attempt: Callable[[], object]) -> KafkaError:
    with pytest.raises(KafkaException) as failure:
        attempt()
    error = failure.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def validate(admin: AdminClient, topic: str, values: Mapping[str, str]) -> None:
    """As `alter`, without changing anything. Raises KafkaException."""
    entries = [
        kafka_admin.ConfigEntry(name, value, incremental_operation=kafka_admin.AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic, incremental_configs=entries)
    untyped: Any = admin
    untyped.incremental_alter_configs([resource], validate_only=True)[resource].result(SECONDS)


@contextmanager
def untouched(broker: BrokerProcess, topic: str) -> Iterator[None]:
    """Whatever happens in the block, settings stay, and a producer and a consumer go on as if nothing had been."""
    admin, received = admin_of(broker), list[int]()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    reading = {"bootstrap.servers": broker.bootstrap, "group.id": f"group-{topic}", "auto.offset.reset": "earliest"}
    errors: list[KafkaError] = []

    def write(numbers: range) -> None:
        for number in numbers:
            producer.produce(
                topic, b"%d" % number, key=b"k%d" % number, on_delivery=lambda e, _: errors.append(e) if e else None
            )
        assert producer.flush(SECONDS) == 0

    def consume(until: int) -> None:
        while len(received) < until:
            for message in consumer.consume(until - len(received), timeout=SECONDS):
                assert message.error() is None, message.error()
                received.append(int(message.value() or b""))

    with closing(Consumer(reading)) as consumer:
        consumer.subscribe([topic])
        write(range(10))
        consume(10)
        before = settings_of(admin, topic)
        yield
        assert settings_of(admin, topic) == before
        write(range(10, 20))
        consume(20)
    assert errors == []
    assert sorted(received) == list(range(20))


ROWS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "compacted": ({"cleanup.policy": "compact"}, "the topic is compacted, and a diskless topic cannot be."),
    "not tiered and not empty": ({}, "has records, and they are not tiered. Set remote.storage.enable=true first"),
    "unclean election on by topic": (
        {**TIERED, "unclean.leader.election.enable": "true"},
        "Set unclean.leader.election.enable=false on the topic first.",
    ),
    "copying to remote storage disabled": (
        {"remote.storage.enable": "true", "remote.log.copy.disable": "true"},
        "Set remote.log.copy.disable=false first.",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_topic_that_is_refused_is_as_it_was(own: BrokerProcess, unique_name: Callable[[], str], row: str) -> None:
    configs, sentence = ROWS[row]
    admin = admin_of(own)
    topic = create(admin, unique_name(), configs, partitions=2)
    with untouched(own, topic):
        for ask in (validate, alter):
            error = refusal(lambda: ask(admin, topic, ON))  # noqa: B023
            assert error.code() == KafkaError.INVALID_CONFIG
            assert error.str().startswith(f"diskless.enable of {topic} cannot become true: ")
            assert sentence in error.str()


def test_an_internal_topic_is_refused(own: BrokerProcess, unique_name: Callable[[], str]) -> None:
    admin = admin_of(own)
    with untouched(own, create(admin, unique_name(), {})):  # its group makes the topic
        error = refusal(lambda: alter(admin, "__consumer_offsets", ON))
        assert error.code() == KafkaError.INVALID_CONFIG
        assert "it is an internal topic" in error.str()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"diskless.storage.system.enable": "false"}, "Set it to true on every broker first."),
        ({"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable is true for the topic"),
    ],
    ids=["diskless not configured", "unclean election on by broker default"],
)
def test_a_broker_that_does_not_allow_it(tmp_path: Path, settings: Mapping[str, str], sentence: str) -> None:
    with running_broker(tmp_path / "data", {**QUICK, **settings}) as broker:
        admin = admin_of(broker)
        topic = create(admin, "t")
        with untouched(broker, topic):
            error = refusal(lambda: alter(admin, topic, ON))
            assert error.code() == KafkaError.INVALID_CONFIG
            assert sentence in error.str()


def test_tiered_system_off(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        admin = admin_of(broker)
        topic = create(admin, "t", {})
        with untouched(broker, topic):
            error = refusal(lambda: alter(admin, topic, {**ON, "remote.storage.enable": "true"}))
            assert error.name() == "KAFKA_STORAGE_ERROR"
            assert "remote.log.storage.system.enable has to be true." in error.str()


def test_tiered_storage_that_is_not_operational(tmp_path: Path, s3: S3, s3_link: Link, s3_url: str) -> None:
    hasty = {"rsm.config.storage.s3.api.call.timeout": "1000", "rsm.config.storage.s3.api.call.attempt.timeout": "500"}
    storage = {**s3_settings(s3, s3_url, port=s3_link.port), **hasty}
    with running_broker(tmp_path / "data", {**QUICK, **storage}) as broker:
        admin = admin_of(broker)
        topic, other = create(admin, "t", {"remote.storage.enable": "true"}), create(admin, "other", TIERED)
        with untouched(broker, topic):
            validate(admin, topic, ON)
            s3_link.go_down()
            produce(broker, other, numbered(0, 60))  # segments that cannot be copied show it soon

            def refused() -> KafkaError | None:
                try:
                    validate(admin, topic, ON)
                except KafkaException as failure:
                    error = failure.args[0]
                    assert isinstance(error, KafkaError)
                    return error
                return None

            wait_until(refused, "the storage to be known as away")
            error = refusal(lambda: alter(admin, topic, ON))
            assert error.name() == "KAFKA_STORAGE_ERROR"
            assert "Partition 0 has records that have to be copied to remote storage." in error.str()
        s3_link.come_back()


def test_the_state_is_shown_for_every_topic_and_written_for_none(
    own: BrokerProcess, unique_name: Callable[[], str]
) -> None:
    admin = admin_of(own)
    kinds = {"N/A": {}, "TIERED_ONLY": TIERED, "DISKLESS_ONLY": ON}
    topics = {state: create(admin, unique_name(), configs) for state, configs in kinds.items()}
    for state, topic in topics.items():
        resource = kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic)
        entry = admin.describe_configs([resource])[resource].result(SECONDS)[STATE]
        assert (entry.value, entry.is_read_only, entry.is_default) == (state, True, True)
        error = refusal(lambda: alter(admin, topic, {STATE: "HYBRID"}))  # noqa: B023
        assert error.code() == KafkaError.INVALID_CONFIG
        assert error.str().startswith("diskless.migration.state is read-only: ")
    error = refusal(lambda: create(admin, unique_name(), {STATE: "HYBRID"}))
    assert error.code() == KafkaError.INVALID_CONFIG


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
def test_everything_that_was_read_may_be_written_back(own: BrokerProcess, unique_name: Callable[[], str]) -> None:
    """As older tools do with AlterConfigs, which replaces all settings."""
    admin = admin_of(own)
    for configs in ({}, {"remote.storage.enable": "true"}, ON):
        topic = create(admin, unique_name(), configs)
        before = settings_of(admin, topic)
        replaced = kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic, set_config={**before})
        admin.alter_configs([replaced])[replaced].result(SECONDS)
        assert settings_of(admin, topic) == before
        other = kafka_admin.ConfigResource(
            kafka_admin.ResourceType.TOPIC, topic, set_config={**before, STATE: "MIGRATING"}
        )
        error = refusal(lambda: admin.alter_configs([other])[other].result(SECONDS))  # noqa: B023
        assert error.str().startswith("diskless.migration.state is read-only: ")
        assert settings_of(admin, topic) == before
