"""Kafka's tools for transactions against a broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench import kafka

from interop import transaction_state
from interop.broker import Target, Topics, broker_like, fresh_directory
from interop.kafka_tools import TOOLS, ToolFailed, Tools, outcome_of
from interop.open_transactions import OpenTransaction, committed, write_transaction
from interop.results import Outcome

NAME = "transactions"
CONSOLE_CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
PERFORMANCE = f"{TOOLS}.ProducerPerformance"
COPIER = f"{TOOLS}.TransactionalMessageCopier"


def why_unavailable() -> str | None:
    return kafka.why_unavailable()


def _create(tools: Tools, topic: str, partitions: int = 1) -> None:
    tools.ask("TopicCommand", "--create", "--topic", topic, "--partitions", str(partitions))


def _ask(tools: Tools, *arguments: str, expect: str = "") -> str:
    return tools.ask("TransactionsCommand", *arguments, expect=expect)


def _must_be_committed(tools: Tools, topic: str, expected: list[str]) -> None:
    values = committed(tools.bootstrap, topic)
    if values != expected:
        raise ToolFailed(f"{topic} has {len(values)} committed records, {len(expected)} are expected: {values[:50]}")


def performance(tools: Tools) -> None:
    """The performance tool with transactions of 50 ms: a read_committed consumer gets every record."""
    _create(tools, "timed", 3)
    how = ("--num-records", "30000", "--record-size", "200", "--throughput", "20000", "--topic", "timed")
    transactional = ("--transactional-id", "timed", "--transaction-duration-ms", "50")
    server = ("--bootstrap-server", tools.bootstrap)
    tools.run(PERFORMANCE, *how, *transactional, *server, expect=r"^30000 records sent")
    _ask(tools, "list", expect=r"^timed\s+1\s+\d+\s+CompleteCommit")
    isolation = ("--isolation-level", "read_committed", "--from-beginning", "--max-messages", "30000")
    tools.ask(CONSOLE_CONSUMER, "--topic", "timed", *isolation, expect=r"Processed a total of 30000 messages")
    ends = tools.ask("GetOffsetShell", "--topic", "timed", "--time", "latest")
    offsets = sum(int(line.rpartition(":")[2]) for line in ends.split())
    if offsets <= 30000:
        raise ToolFailed(f"there are {offsets} offsets, and so no markers")


def copier(tools: Tools) -> None:
    """Kafka's program for exactly-once copies, which aborts transactions at random: every record arrives once."""
    _create(tools, "copied-from")
    _create(tools, "copied-to")
    lines = [str(number) for number in range(3000)]
    tools.ask("ConsoleProducer", "--topic", "copied-from", stdin="".join(f"{line}\n" for line in lines))
    where = ("--input-topic", "copied-from", "--input-partition", "0", "--output-topic", "copied-to")
    how = ("--transactional-id", "copier", "--consumer-group", "copiers", "--transaction-size", "100")
    more = ("--broker-list", tools.bootstrap, "--enable-random-aborts", "--use-group-metadata")
    tools.run(COPIER, *where, *how, *more, expect=r'"remaining":0|shutdown_complete')
    _must_be_committed(tools, "copied-to", lines)
    group = ("--describe", "--group", "copiers")
    lag = r"copiers +copied-from +0 +3000 +3000 +0 "
    tools.ask(f"{TOOLS}.consumer.group.ConsumerGroupCommand", *group, expect=lag)


def listing(tools: Tools) -> None:
    """An open transaction is listed, described and found at its partition; afterwards it has ended."""
    _create(tools, "listed")
    partition = ("--topic", "listed", "--partition", "0")
    with OpenTransaction(tools.bootstrap, "listed-id", "listed", ["1", "2", "3"]) as transaction:
        _ask(tools, "list", expect=r"^listed-id\s+1\s+\d+\s+Ongoing")
        pattern = ("--transactional-id-pattern", "listed-.*", "--duration-filter", "0")
        _ask(tools, "list", *pattern, expect=r"^listed-id\s.*Ongoing")
        if "listed-id" in _ask(tools, "list", "--duration-filter", "3600000"):
            raise ToolFailed("a transaction of a few seconds is listed among those of an hour")
        _ask(tools, "describe", "--transactional-id", "listed-id", expect=r"\sOngoing\s.*\slisted-0\s*$")
        # Producer id, epoch, coordinator's epoch, last sequence, last time, first offset of the open transaction.
        _ask(tools, "describe-producers", *partition, expect=r"^\d+\s+\d+\s+-?\d+\s+2\s+\d+\s+0\s*$")
        transaction.commit()
    _ask(tools, "list", expect=r"^listed-id\s+1\s+\d+\s+CompleteCommit")
    _ask(tools, "describe-producers", *partition, expect=r"^\d+\s+\d+\s+\d+\s+-?\d+\s+\d+\s+None\s*$")


def terminating(tools: Tools) -> None:
    """A transaction that is ended by force is aborted, and its producer fenced."""
    _create(tools, "terminated")
    with OpenTransaction(tools.bootstrap, "terminated-id", "terminated", ["gone"]) as transaction:
        _ask(tools, "forceTerminateTransaction", "--transactionalId", "terminated-id")
        _ask(tools, "list", expect=r"^terminated-id\s+1\s+\d+\s+Empty")
        if not transaction.is_fenced():
            raise ToolFailed("the producer of a transaction that was ended by force could commit it")
    write_transaction(tools.bootstrap, "terminated-id", "terminated", ["kept"])
    _must_be_committed(tools, "terminated", ["kept"])


def console(tools: Tools) -> None:
    """What the console consumer prints at either isolation level: committed, aborted and open transactions."""
    _create(tools, "isolated")
    write_transaction(tools.bootstrap, "isolated-1", "isolated", ["committed"])
    write_transaction(tools.bootstrap, "isolated-1", "isolated", ["aborted"], commits=False)
    levels = {"read_committed": ["committed"], "read_uncommitted": ["committed", "aborted", "open"]}
    with OpenTransaction(tools.bootstrap, "isolated-2", "isolated", ["open"]) as transaction:
        for level, expected in levels.items():
            how = ("--topic", "isolated", "--from-beginning", "--timeout-ms", "8000", "--isolation-level", level)
            printed = [
                line for line in tools.output(CONSOLE_CONSUMER, *how).split() if line in levels["read_uncommitted"]
            ]
            if printed != expected:
                raise ToolFailed(f"with {level} the console consumer prints {printed}")
        transaction.abort()
    _must_be_committed(tools, "isolated", ["committed"])


def features(tools: Tools) -> None:
    """transaction.version is shown, goes down and up again; the producer works at each level."""
    _create(tools, "levels")
    shown = (
        r"^Feature: transaction\.version\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 2\s+FinalizedVersionLevel: "
    )
    tools.ask("FeatureCommand", "describe", expect=shown + "2")
    written: list[str] = []
    for change, level in (("downgrade", 1), ("downgrade", 0), ("upgrade", 1), ("upgrade", 2)):
        tools.ask("FeatureCommand", change, "--feature", f"transaction.version={level}", expect=rf"graded to {level}")
        tools.ask("FeatureCommand", "describe", expect=shown + str(level))
        how = ("--num-records", "500", "--throughput", "-1", "--payload-monotonic", "--topic", "levels")
        transactional = ("--transactional-id", "levels", "--transaction-duration-ms", "20")
        tools.run(PERFORMANCE, *how, *transactional, "--bootstrap-server", tools.bootstrap)
        written += [str(number) for number in range(500)]
        _must_be_committed(tools, "levels", written)
    tools.be_refused("FeatureCommand", "upgrade", "--feature", "transaction.version=3", expect=r"transaction\.version")


def hanging(tools: Tools, target: Target) -> None:
    """A transaction that its coordinator does not know is found and aborted, and readers go on.

    No client can leave one at a broker that verifies what is written. So the state of all transactions is taken from a
    stopped broker.
    """
    directory = fresh_directory(f"{target.run_name}-hanging-{target.name}")
    with broker_like(target, directory) as broker:
        _create(tools.at(broker.bootstrap), "hung")
        write_transaction(broker.bootstrap, "hung-1", "hung", ["first"])
        with OpenTransaction(broker.bootstrap, "hung-2", "hung", ["never"]):
            write_transaction(broker.bootstrap, "hung-1", "hung", ["second"])
            broker.stop()
        transaction_state.forget(broker.log_dir)
    with broker_like(target, directory) as broker:
        there = tools.at(broker.bootstrap)
        _must_be_committed(there, "hung", ["first"])
        search = ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
        _ask(there, *search, expect=r"^hung\s+0\s+\d+\s+\d+\s+-?\d+\s+2\s")
        _ask(there, "abort", "--topic", "hung", "--partition", "0", "--start-offset", "2")
        if "hung" in _ask(there, *search):
            raise ToolFailed("the transaction is still found after it was aborted")
        _must_be_committed(there, "hung", ["first", "second"])


CHECKS: tuple[Callable[[Tools], None], ...] = (
    performance,
    copier,
    listing,
    terminating,
    console,
    features,
)


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run every check, or the one named `only`."""
    log_file = target.suite_log
    log_file.write_text("")
    tools = Tools(kafka.install(), target.bootstrap, log_file)
    checks: dict[str, Callable[[], None]] = {check.__name__: partial(check, tools) for check in CHECKS}
    checks["hanging"] = lambda: hanging(tools, target)
    if target.topics is Topics.CLASSIC:  # the state of transactions is a classic topic, whatever they write to
        checks |= transaction_state.checks(tools, log_file)
    return {name: outcome_of(name, check, log_file) for name, check in checks.items() if only in (None, name)}
