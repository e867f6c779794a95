"""`strandline migration` where the HTTP listener of a broker cannot be reached: it shows what others know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.admin.commands.conftest import Command, command
from tests.broker import BrokerProcess
from tests.clients.tiering import create
from tests.clients.two_brokers import running_cluster
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["command", "postgres", "postgres_url"]

pytestmark = pytest.mark.timeout(120)


@dataclass(slots=True)
class WithoutHttp(BrokerProcess):
    """A broker with `strandline.http.listen=`."""

    def command(self) -> list[str]:
        words = BrokerProcess.command(self)
        words[words.index("--http") + 1] = "none"
        return words


def test_kafkas_protocol_gives_the_state_if_no_broker_has_http(tmp_path: Path, command: Command) -> None:
    broker = WithoutHttp(tmp_path / "data")
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        create(admin, "orders", {})
        options = ("--bootstrap", broker.bootstrap)
        started = command("migration", "start", "orders", "--wait", *options)
        assert started.status == 0, started.err
        found = command("migration", "status", "orders", "--json", *options).json
        assert (found["state"], found["partitions"]) == ("DISKLESS_ONLY", [])
        (sentence,) = found["unreached"]
        assert sentence == "Broker 1 cannot say how far the switch is, because its strandline.http.listen is empty."
        assert sentence in command("migration", "status", "orders", *options).out
        refused = command("migration", "list", *options)
        assert refused.status == 1
        assert "strandline.http.listen is empty" in refused.err
    finally:
        broker.close()


def test_one_broker_answers_for_the_other(
    tmp_path: Path, postgres_url: str, command: Command, unique_name: Callable[[], str]
) -> None:
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_cluster(tmp_path, postgres_url, settings=shared) as cluster:
        topic = unique_name()
        cluster.create(topic, partitions=4, via=1)
        assert set(cluster.leaders(topic, 1)) == {1, 2}
        options = ("--bootstrap", cluster.brokers[1].bootstrap)
        started = command("migration", "start", topic, "--wait", *options)
        assert started.status == 0, started.err
        heard = cluster.brokers[2]
        heard.stop()
        cluster.brokers[2] = WithoutHttp(heard.data_dir, settings=heard.settings, port=heard.port)
        cluster.brokers[2].start()
        cluster.wait_alive(1, 2)
        wait_until(lambda: 2 in cluster.leaders(topic, 1), within=30.0, what="broker 2 to lead again")
        found = command("migration", "status", topic, "--json", *options).json
        assert (found["state"], [row["b0"] for row in found["partitions"]]) == ("DISKLESS_ONLY", [0, 0, 0, 0])
        (sentence,) = found["unreached"]
        assert sentence.startswith("Broker 2 cannot say how far the switch is")
        assert topic in {row["topic"] for row in command("migration", "list", "--json", *options).json}
