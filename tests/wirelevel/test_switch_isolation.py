"""Classic topics do not pay for switched ones: nothing on their way asks the control plane (invariant I1)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from confluent_kafka.admin import AdminClient

from strandline.wire.errors import ErrorCode
from tests.broker import running_broker
from tests.clients.switching import switch, wait_switched
from tests.clients.tiering import QUICK, create
from tests.link import Link
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until
from tests.wirelevel.asking import (
    Asked,
    ask_for_end_of_epoch,
    ask_for_offset,
    ask_to_fetch,
    ask_to_produce,
    client_of,
    offsets_in,
)
from tests.wirelevel.raw import batch

__all__ = ["postgres", "postgres_url"]

EARLIEST, LATEST = -2, -1
ROUNDS = 50


def test_classic_topics_are_written_and_read_while_the_control_plane_hangs(tmp_path: Path, postgres_url: str) -> None:
    """Whatever asked it would not be answered. The switched topic on the same broker shows that it hangs."""
    database = urlsplit(postgres_url)
    (directory,) = parse_qs(database.query)["host"]
    with Link(f"{directory}/.s.PGSQL.5432") as link:
        url = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        with running_broker(tmp_path / "data", {**QUICK, "strandline.metadata.url": url}) as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            names = {"classic": {}, "tiered": {"remote.storage.enable": "true"}, "switched": {}}
            with client_of(broker) as client:
                for name, configs in names.items():
                    create(admin, name, configs)
                switch(admin, "switched")
                assert wait_switched(broker, "switched") == [0]
                assert ask_to_produce(client, "switched", batch(b"a")) == Asked(0, 0, 0)
                link.hang()
                with client_of(broker) as other:
                    for name in ("classic", "tiered"):
                        for number in range(ROUNDS):
                            assert ask_to_produce(other, name, batch(b"a")) == Asked(0, number, 0)
                            assert offsets_in(ask_to_fetch(other, name, number, wait_ms=10_000)) == [number]
                        assert ask_for_offset(other, name, EARLIEST) == Asked(0, 0)
                        assert ask_for_offset(other, name, LATEST) == Asked(0, ROUNDS)
                        assert ask_for_end_of_epoch(other, name, 0) == (0, 0, ROUNDS)
                link.go_down()  # so that those who wait for it are told
                assert ask_for_offset(client, "switched", LATEST).error == ErrorCode.REQUEST_TIMED_OUT
                link.come_back()
                wait_until(lambda: ask_for_offset(client, "switched", LATEST) == Asked(0, 1), what="the control plane")
