"""The database, the object store or remote storage goes away at a step of the switch of a topic, and comes back.

The switch waits and says why; nothing is lost, and classic topics do not notice.
"""

from __future__ import annotations

import itertools
import signal
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import KafkaException

from strandline.clock import SystemClock
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import create
from tests.clients.two_brokers import QUICK as QUICK_SESSIONS
from tests.crash.switching import (
    PARTITIONS,
    SETTINGS,
    TOPIC,
    administrator,
    assert_nothing_lost,
    boundaries,
    create_history,
    problems,
    request_switch,
    wait_bounded,
    wait_stopped,
    wait_switched,
)
from tests.crash.test_database_states import READ_ONLY, Database, State
from tests.crash.tiered_store import s3_settings
from tests.crash.writers import Writer, wait_for_more
from tests.link import Link
from tests.postgres import Postgres, postgres
from tests.s3 import S3, s3
from tests.waiting import wait_until
from tests.wirelevel.raw import batch, connected, produce

__all__ = ["postgres", "s3"]

pytestmark = pytest.mark.timeout(240)

_NUMBERS = itertools.count()
StartWriters = Callable[..., list[Writer]]


def go_on(broker: BrokerProcess) -> None:
    assert broker.process is not None
    broker.process.send_signal(signal.SIGCONT)


class Outage:
    """A database behind a link, in one of the states that it can be in while it is away."""

    def __init__(self, postgres: Postgres, stack: ExitStack, how: str) -> None:
        self._how = how
        self.database = Database(postgres)
        address = urlsplit(self.database.url)
        (directory,) = parse_qs(address.query)["host"]
        self.link = stack.enter_context(Link(f"{directory}/.s.PGSQL.5432"))
        self.url = f"postgresql://{self.database.role}:top-secret@127.0.0.1:{self.link.port}{address.path}"

    @contextmanager
    def away(self) -> Iterator[None]:
        state: State | None = READ_ONLY if self._how == "read-only" else None
        if state is not None:
            state.begin(self.database)
        elif self._how == "hung":
            self.link.hang()
        elif self._how == "deaf":
            self.link.lose_answers(b"COMMIT", every=1)
        else:
            self.link.go_down()
        try:
            yield
        finally:
            self.link.lose_answers(b"", every=0)
            self.link.come_back()
            if state is not None:
                state.end(self.database)


def write(broker: BrokerProcess, topic: str) -> ErrorCode:
    """What a client is told that sends a record to partition 0."""
    with connected(broker.bootstrap) as connection:
        value = b"probe %d " % next(_NUMBERS)
        code, _, _ = produce(connection, topic, batch(value, first_timestamp=SystemClock().now_ms()))
        return ErrorCode(code)


@pytest.mark.parametrize(
    ("place", "how"),
    [
        ("switch.before_seal", "down"),
        ("switch.after_flush", "hung"),
        ("switch.after_flush", "read-only"),
        ("controlplane.migration.before_commit", "deaf"),
        ("switch.after_boundary", "down"),
    ],
)
def test_the_control_plane_goes_away_at_a_step(
    tmp_path: Path, postgres: Postgres, start_writers: StartWriters, place: str, how: str
) -> None:
    with ExitStack() as stack:
        outage = Outage(postgres, stack, how)
        settings = {**SETTINGS, **QUICK_SESSIONS, "strandline.metadata.url": outage.url}
        environment = {ENVIRONMENT_VARIABLE: f"stop@{place}"}
        broker = stack.enter_context(running_broker(tmp_path / "data", settings, environment=environment))
        create_history(broker)
        create(administrator(broker), "classic", {})
        writers = start_writers(broker.bootstrap, TOPIC, count=2, partitions=PARTITIONS, pause=0.002)
        others = start_writers(broker.bootstrap, "classic", count=1, partitions=1, pause=0.002)
        wait_for_more(writers, 300)
        request_switch(broker)
        wait_stopped(broker)
        with outage.away():
            go_on(broker)
            wait_for_more(others, 300)
            if place in ("switch.before_seal", "switch.after_flush"):
                wait_until(lambda: write(broker, TOPIC) is ErrorCode.REQUEST_TIMED_OUT, what="the sealed log to say so")
            if how == "deaf":
                wait_until(lambda: outage.link.lost > 0, what="an answer to be lost")
        wait_switched(broker)
        wait_for_more(writers, 300)
        for one in others:
            one.stop()
        assert [one.failures for one in others] == [[]]
        assert_nothing_lost(broker, writers)
        assert "Traceback" not in broker.log_text


@pytest.fixture
def stores(s3: S3) -> Iterator[tuple[Link, Link, dict[str, str]]]:
    """Ways to the object store of diskless topics and to remote storage, and the settings of a broker that has both."""
    with Link(("127.0.0.1", s3.port)) as objects, Link(("127.0.0.1", s3.port)) as remote:
        yield (
            objects,
            remote,
            {
                **SETTINGS,
                "strandline.objects.url": f"s3://{s3.new_bucket()}/diskless",
                "inkless.storage.s3.endpoint.url": f"http://127.0.0.1:{objects.port}",
                "inkless.storage.s3.region": "us-east-1",
                "inkless.storage.aws.access.key.id": "test",
                "inkless.storage.aws.secret.access.key": "test-secret",
                **s3_settings(s3, f"s3://{s3.new_bucket()}/remote", port=remote.port),
                "inkless.migration.segment.wait.ms": "1000",
            },
        )


def test_the_object_store_and_remote_storage_go_away_during_switches(
    tmp_path: Path, stores: tuple[Link, Link, dict[str, str]], start_writers: StartWriters
) -> None:
    objects, remote, settings = stores
    environment = {ENVIRONMENT_VARIABLE: "stop@switch.after_boundary:2"}
    with running_broker(tmp_path / "data", settings, environment=environment) as broker:
        admin = administrator(broker)
        create(admin, "diskless", {"diskless.enable": "true"})
        wait_until(lambda: write(broker, "diskless") is ErrorCode.NONE, within=30, what="the object store to be used")
        writers = {}
        for topic in ("before", "copying", "behind"):
            create_history(broker, topic, partitions=1)
            writers[topic] = start_writers(broker.bootstrap, topic, count=1, partitions=1, pause=0.01)
            wait_for_more(writers[topic], 100)

        objects.go_down()  # before the request
        wait_until(lambda: misses_a_store(broker), within=30, what="the broker to notice")
        request_switch(broker, "before")
        wait_until(lambda: problems(broker, "before"), what="the status to say why nothing happens")
        wait_for_more(writers["before"], 100)
        assert boundaries(broker, "before") == [-1]
        objects.come_back()
        wait_until(lambda: write(broker, "diskless") is ErrorCode.NONE, within=30, what="the store to be back")
        wait_switched(broker, "before")
        wait_for_more(writers["before"], 100)

        request_switch(broker, "copying")
        wait_stopped(broker)  # with a boundary, below which not everything is copied
        remote.go_down()
        go_on(broker)
        wait_for_more(writers["copying"], 100)
        (problem,) = wait_until(lambda: problems(broker, "copying"), what="the status to say what is not copied")
        assert "in remote storage" in problem
        wait_until(lambda: misses_a_store(broker), within=30, what="the broker to notice")
        with pytest.raises(KafkaException, match="KAFKA_STORAGE_ERROR"):
            request_switch(broker, "behind")
        wait_for_more(writers["behind"], 100)
        remote.come_back()
        wait_switched(broker, "copying")
        assert problems(broker, "copying") == []

        wait_until(lambda: not misses_a_store(broker), within=30, what="the broker to notice")
        request_switch(broker, "behind")
        wait_bounded(broker, "behind", partitions=1)
        objects.go_down()  # when there is no way back
        wait_until(lambda: misses_a_store(broker), within=30, what="the broker to notice")
        objects.come_back()
        wait_for_more(writers["behind"], 100)
        wait_switched(broker, "behind")
        for topic, some in writers.items():
            assert_nothing_lost(broker, some, topic)
        assert "Traceback" not in broker.log_text


def misses_a_store(broker: BrokerProcess) -> bool:
    with urllib.request.urlopen(f"{broker.http}/readyz", timeout=10) as answer:
        return "is away" in answer.read().decode()
