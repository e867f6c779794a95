"""README's walk through the product, line by line: a newcomer finds what each line promises."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.admin.commands.conftest import Command, command
from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import ConfluentDriver, Sent
from tests.clients.test_migration_commands import wait_http
from tests.pipeline.world import convert

__all__ = ["command"]

pytestmark = pytest.mark.timeout(120)
README = Path(__file__).parents[2] / "README.md"
# What a line shows, at least; every line of a kind in its order.
SHOWS = {
    "kcat -G": ["high water 06:12"],
    "topics describe": ["classic"],
    "groups list": ["beach"],
    "topics create": ["Topic waves was created"],
    "wal list": ["wal/"],
    "configs alter": ["2 changes made"],
    "topics tiers": ["local", "0 1 0 to 1"],  # partition, leader, offsets in remote storage: both
    "migration start": ["HYBRID, 1 of 1 partitions diskless, 100 %"],
    "tiering trigger": ["1 rows"],
    "tiering run": ["1 segments"],
}


def lines() -> list[list[str]]:
    """The commands of "Try it" behind those of make, as words."""
    section = README.read_text(encoding="utf-8").split("## Try it")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    found = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [words for words in found if words[0] != "make"]


def kcat(broker: BrokerProcess, words: list[str]) -> tuple[str, str]:
    """What kcat would do, which is not installed everywhere; the kind of line, and what it shows."""
    if "-P" in words:
        topic, value = words[words.index("-t") + 1], words[words.index("<<<") + 1]
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(value.encode())])
        return "kcat -P", ""
    assert words[-2] == "-e", words
    wishes = dict([words[words.index("-X") + 1].split("=")])
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": words[words.index("-G") + 1], **wishes})
    try:
        consumer.subscribe([words[-1]])
        message = consumer.poll(30)
    finally:
        consumer.close()
    assert message is not None, words
    return "kcat -G", (message.value() or b"").decode()


def test_every_line_of_the_walk_finds_something(tmp_path: Path, command: Command) -> None:
    shown: dict[str, list[str]] = {}
    with running_broker(tmp_path / "data") as broker:
        wait_http(broker)
        for program, *words in lines():
            if program == "kcat":
                kind, out = kcat(broker, words)
            elif words[0] == "broker":
                broker.stop()
                broker.settings = dict(word.split("=", 1) for word in words if "=" in word)
                broker.start()
                wait_http(broker)
                continue
            elif words[0] == "cluster":
                continue  # tests/admin/commands/cluster
            else:
                kind = " ".join(words[:2])
                where = ["--data-dir", str(tmp_path / "data")] if words[0] == "wal" else ["-b", broker.bootstrap]
                is_on_spark = kind == "tiering run"
                outcome = command(*words, *where, *(["--help"] if is_on_spark else []))
                assert outcome.status == 0, (words, outcome.err)
                # Spark has tests of its own: here the same steps run without it, on what a run would find.
                out = f"{len(convert(broker.bootstrap).segments)} segments" if is_on_spark else outcome.out
            shown.setdefault(kind, []).append(out)
    del shown["kcat -P"]
    assert shown.keys() == SHOWS.keys()
    for kind, promised in SHOWS.items():
        assert len(shown[kind]) == len(promised)
        for out, part in zip(shown[kind], promised, strict=True):
            assert part in " ".join(out.split()), (kind, " ".join(out.split()))
