"""`__transaction_state` that one kind of broker wrote in the hands of the other, and of Kafka's dump tool."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import kafka

from interop.broker import SETTINGS, StrandlineBroker, fresh_directory
from interop.dump_tool import dump
from interop.kafka_tools import ToolFailed, Tools
from interop.open_transactions import OpenTransaction, committed, write_transaction
from interop.records import create_topics

STATE = "__transaction_state"
TOPIC = "moved"
WRITTEN = {"moved-committed": "CompleteCommit", "moved-aborted": "CompleteAbort", "moved-open": "Ongoing"}
"""The transactional ids, and what became of their last transaction."""

_SETTINGS = {**SETTINGS, "transaction.state.log.num.partitions": "4"}
_STATUS = {1: "Ongoing", 4: "CompleteCommit", 5: "CompleteAbort"}  # as they are numbered in records
_DUMPED = re.compile(r'"transactionalId":"([^"]+)".*"transactionStatus":(\d+)')


def checks(tools: Tools, log_file: Path) -> dict[str, Callable[[], None]]:
    return {
        "dump-transaction-state": lambda: _dump(log_file),
        "kafka-loads-our-transactions": lambda: _loaded_by_kafka(tools),
        "kafkas-transactions-taken-over": lambda: _taken_in_turns(tools),
    }


def forget(log_dir: Path) -> None:
    """Take the state of all transactions from a stopped broker. It makes the partitions again, empty."""
    for partition in log_dir.glob(f"{STATE}-*"):
        shutil.rmtree(partition)


def _dump(log_file: Path) -> None:
    """Kafka's decoder finds every state in our files."""
    with _written_by_us() as log_dir:
        said = dump(kafka.install(), log_dir.glob(f"{STATE}-*/*.log"), "--transaction-log-decoder", log_file=log_file)
    last = {name: _STATUS.get(int(status), status) for name, status in _DUMPED.findall(said)}
    if last != WRITTEN:
        raise ToolFailed(f"the dump tool finds {last}")


def _loaded_by_kafka(tools: Tools) -> None:
    """Kafka's coordinator loads what we wrote, and goes on with it.

    Topic ids are Kafka's own, as in the suite about segment files.
    """
    data_dir = fresh_directory("transactions-in-kafka")
    with kafka.KafkaBroker(kafka.install(), data_dir, settings=_SETTINGS) as broker:
        create_topics(broker.bootstrap, {TOPIC: {}}, 1)
        write_transaction(broker.bootstrap, "other", TOPIC, ["other"])  # so that there is a topic for the state
    with _written_by_us() as log_dir:
        for partition in (*log_dir.glob(f"{STATE}-*"), log_dir / f"{TOPIC}-0"):
            own = data_dir / partition.name
            topic_id = (own / "partition.metadata").read_text()
            shutil.rmtree(own)
            shutil.copytree(partition, own)
            (own / "partition.metadata").write_text(topic_id)
        for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            shutil.copy(log_dir / checkpoint, data_dir / checkpoint)
    with kafka.KafkaBroker(kafka.install(), data_dir, settings=_SETTINGS) as broker:
        _check_and_go_on(tools.at(broker.bootstrap))


def _taken_in_turns(tools: Tools) -> None:
    """We load what Kafka wrote and go on with it; then Kafka gets its directory back."""
    data_dir = fresh_directory("transactions-in-turns")
    with kafka.KafkaBroker(kafka.install(), data_dir, settings=_SETTINGS) as broker:
        create_topics(broker.bootstrap, {TOPIC: {}}, 1)
        with _left_behind(broker.bootstrap):
            broker.stop()
    settings = {**_SETTINGS, "log.dirs": str(data_dir), "node.id": "1"}
    with StrandlineBroker(fresh_directory("transactions-in-turns-strandline"), settings) as ours:
        _check_and_go_on(tools.at(ours.bootstrap))
    with kafka.KafkaBroker(kafka.install(), data_dir, settings=_SETTINGS) as broker:
        back = tools.at(broker.bootstrap)
        _must_be_listed(back, {**WRITTEN, "moved-open": "CompleteCommit"})
        write_transaction(broker.bootstrap, "moved-open", TOPIC, ["back"])
        _must_be_committed(back, ["kept", "later", "back"])


@contextmanager
def _written_by_us() -> Iterator[Path]:
    """The log directory of a broker of ours that was stopped while a transaction was open."""
    with StrandlineBroker(fresh_directory("transactions-written"), _SETTINGS) as broker:
        create_topics(broker.bootstrap, {TOPIC: {}}, 1)
        with _left_behind(broker.bootstrap):
            broker.stop()
            yield broker.log_dir


@contextmanager
def _left_behind(bootstrap: str) -> Iterator[None]:
    """A transaction that is committed, one that is aborted, one that is open while the block runs."""
    write_transaction(bootstrap, "moved-committed", TOPIC, ["kept"])
    write_transaction(bootstrap, "moved-aborted", TOPIC, ["dropped"], commits=False)
    with OpenTransaction(bootstrap, "moved-open", TOPIC, ["open"]):
        yield


def _check_and_go_on(tools: Tools) -> None:
    """The states are as they were written. The next producer of the open one aborts it and writes."""
    _must_be_listed(tools, WRITTEN)
    described = ("describe", "--transactional-id", "moved-open")
    tools.ask("TransactionsCommand", *described, expect=rf"\sOngoing\s.*\s{TOPIC}-0\s*$")
    _must_be_committed(tools, ["kept"])
    write_transaction(tools.bootstrap, "moved-open", TOPIC, ["later"])
    _must_be_committed(tools, ["kept", "later"])


def _must_be_listed(tools: Tools, states: dict[str, str]) -> None:
    said = tools.ask("TransactionsCommand", "list")
    found = {line.split()[0]: line.split()[-1] for line in said.splitlines() if line.startswith("moved-")}
    if found != states:
        raise ToolFailed(f"the transactions are {found}, and not {states}")


def _must_be_committed(tools: Tools, expected: list[str]) -> None:
    values = committed(tools.bootstrap, TOPIC)
    if values != expected:
        raise ToolFailed(f"{values} are committed, and not {expected}")
