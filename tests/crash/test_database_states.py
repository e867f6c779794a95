"""Brokers outlive every state of PostgreSQL: classic topics do not notice, diskless ones go on when it is back."""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]
import pytest

from strandline.metadata.controller.leadership import LEASE_SECONDS
from strandline.sql.opening import DEFAULT_DEADLINE
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess
from tests.clients.test_two_brokers_diskless_reads import Asking
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.crash.test_stalls import BUDGETS, QUICK_GROUPS, Member, floods, outlast
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.postgres import Postgres, postgres
from tests.waiting import wait_until

__all__ = ["postgres"]

pytestmark = pytest.mark.timeout(240)

TABLES = ("controller_lease", "metadata_records", "inkless_log", "inkless_file")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Database:
    """The database of a cluster, and what operators and failovers do to it. Brokers have a role without privileges."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        address = urlsplit(postgres.new_database())
        self.name = address.path.removeprefix("/")
        self.role = f"keeper_{self.name}"
        postgres.run(f"CREATE ROLE {self.role} LOGIN; ALTER DATABASE {self.name} OWNER TO {self.role};")
        self.run(f"ALTER SCHEMA public OWNER TO {self.role};")
        self.url = f"postgresql://{self.role}:top-secret@{address.path}?{address.query}"

    def run(self, *statements: str) -> None:
        self._postgres.run(f"\\c {self.name}\n" + "".join(f"{statement};\n" for statement in statements))

    def cut(self) -> None:
        """End all sessions, as a failover does."""
        self._postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.name}';")

    @contextmanager
    def locked(self, table: str) -> Iterator[Callable[[], int]]:
        """An operator holds a lock on a table. Tells how many connections wait for locks."""
        with asyncio.Runner() as runner:
            operator, onlooker = (runner.run(asyncpg.connect(self.url)) for _ in range(2))
            try:
                runner.run(operator.execute(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
                yield lambda: runner.run(onlooker.fetchval(WAITING))
            finally:
                runner.run(operator.close())
                runner.run(onlooker.close())

    def stop(self) -> None:
        asyncio.run(self._postgres.stop())

    def start(self) -> None:
        asyncio.run(self._postgres.start())


class State(NamedTuple):
    """A state of the database, and the word for it in the logs."""

    begin: Callable[[Database], None]
    end: Callable[[Database], None]
    word: str


def _begin_read_only(database: Database) -> None:
    database.run(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    database.cut()


def _begin_read_only_for_open_sessions(database: Database) -> None:
    database.run("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")


def _end_read_only(database: Database) -> None:
    """Sessions that were opened meanwhile stay read-only: brokers have to open others."""
    database.run(
        "SET default_transaction_read_only = off",
        f"ALTER DATABASE {database.name} RESET default_transaction_read_only",
        "ALTER SYSTEM RESET default_transaction_read_only",
        "SELECT pg_reload_conf()",
    )


def _refuse_logins(database: Database) -> None:
    database.run(f"ALTER ROLE {database.role} NOLOGIN")
    database.cut()


READ_ONLY = State(_begin_read_only, _end_read_only, "25006")
READ_ONLY_AT_ONCE = State(_begin_read_only_for_open_sessions, _end_read_only, "25006")
TABLES_AWAY = State(
    lambda database: database.run(*(f"ALTER TABLE {table} RENAME TO {table}_away" for table in TABLES)),
    lambda database: database.run(*(f"ALTER TABLE {table}_away RENAME TO {table}" for table in TABLES)),
    "42P01",
)
NO_RIGHTS = State(
    lambda database: database.run(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {database.role}"),
    lambda database: database.run(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {database.role}"),
    "42501",
)
NO_LOGIN = State(_refuse_logins, lambda database: database.run(f"ALTER ROLE {database.role} LOGIN"), "28000")
STOPPED = State(Database.stop, Database.start, "cannot be reached")


class Load:
    """Clients of a classic and of a diskless topic, which never stop."""

    def __init__(self, cluster: BrokerCluster, stack: ExitStack) -> None:
        self._cluster = cluster
        self._numbers = itertools.count(1)
        cluster.create("diskless", via=1, config={"diskless.enable": "true"})
        cluster.create("classic", partitions=2, via=1)
        self.classic = Writer(cluster.bootstrap, "classic", "classic-writer", 2, pause=0.01)
        self.diskless = Writer(cluster.bootstrap, "diskless", "diskless-writer", 1, pause=0.01)
        for writer in (self.classic, self.diskless):
            writer.start()
            stack.callback(writer.stop)
        self.member = Member(cluster.bootstrap, "group", "classic")
        stack.callback(self.member.close)
        wait_until(lambda: self.member.read > 10, within=30.0, what="the group to read")
        wait_for_more([self.diskless], 10)

    def passes_through(self, database: Database, state: State) -> None:
        """Classic topics are written and read while both brokers meet the state; afterwards everything is as before."""
        seen = {number: len(broker.log_text) for number, broker in self._cluster.brokers.items()}
        read = self.member.read
        state.begin(database)
        try:
            self._wait_logged(seen, f"the controller's periodic work failed, trying again: .*{state.word}")
            wait_for_more([self.classic], 50, alive=self._all_run)
            wait_until(lambda: self.member.read > read + 50, within=30.0, what="the group to read")
            assert self._all_run()
        finally:
            state.end(database)
        self._wait_logged(seen, "the controller's periodic work succeeds again")
        wait_for_more([self.diskless], 20, alive=self._all_run)
        self._cluster.create(f"topic-{next(self._numbers)}", via=2)  # the controller writes again
        assert self._all_run()

    def _wait_logged(self, seen: Mapping[int, int], pattern: str) -> None:
        """Until both brokers have logged this since their logs had these lengths, or one has ended."""
        logs = {number: broker.log_path for number, broker in self._cluster.brokers.items()}
        wait_until(
            lambda: (
                not self._all_run()
                or all(re.search(pattern, log.read_text()[seen[number] :]) for number, log in logs.items())
            ),
            within=30.0,
            what=f"{pattern} in the logs of both brokers",
        )

    def _all_run(self) -> bool:
        return all(broker.is_running for broker in self._cluster.brokers.values())


@contextmanager
def loaded_cluster(
    directory: Path, database: Database, more_settings: Mapping[str, str] | None = None
) -> Iterator[tuple[BrokerCluster, Load]]:
    """Two brokers under load. At the end nothing may have been lost, and no one but the database may have failed."""
    settings = {**QUICK_GROUPS, "strandline.objects.url": f"file://{directory}/objects", **(more_settings or {})}
    with running_cluster(directory, database.url, settings=settings) as cluster:
        with ExitStack() as stack:
            load = Load(cluster, stack)
            yield cluster, load
            assert load.member.revoked == 0
        writers = [load.classic, load.diskless]
        assert [writer.failures for writer in writers] == [[], []]
        for writer in writers:
            found = read_all(cluster.bootstrap, writer.topic, writer.partitions)
            verdict = judge([writer], found)
            assert verdict.is_clean, str(verdict)
        for broker in cluster.brokers.values():
            assert "is fenced" not in broker.log_text
            assert "Traceback" not in broker.log_text
            assert "top-secret" not in broker.log_text
            assert broker.stop() == 0


def test_a_database_that_is_read_only_for_a_while_ends_no_broker(tmp_path: Path, postgres: Postgres) -> None:
    database = Database(postgres)
    with loaded_cluster(tmp_path, database) as (cluster, load):
        controller = cluster.brokers[cluster.controller()]  # on a busy machine its lease may run out meanwhile
        load.passes_through(database, READ_ONLY)
        load.passes_through(database, READ_ONLY_AT_ONCE)
        assert (
            "the controller's periodic work failed, trying again: The metadata database is not" in controller.log_text
        )
        assert "the controller's periodic work succeeds again" in controller.log_text


def test_tables_rights_and_logins_that_are_away_for_a_while_end_no_broker(tmp_path: Path, postgres: Postgres) -> None:
    database = Database(postgres)
    with loaded_cluster(tmp_path, database) as (_, load):
        for state in (TABLES_AWAY, NO_RIGHTS, NO_LOGIN, STOPPED):
            load.passes_through(database, state)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of the server in /proc")
def test_a_database_that_is_suspended_for_longer_than_the_lease_disturbs_no_classic_topic(
    tmp_path: Path, postgres: Postgres
) -> None:
    """Every transaction runs into its deadline, the controller's lease is over, and diskless writes pile up."""
    database = Database(postgres)
    quick = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"}
    with loaded_cluster(tmp_path, database, {**BUDGETS, **quick}) as (cluster, load):
        cluster.create("flooded", via=1, config={"diskless.enable": "true"})
        ports = [broker.port for broker in cluster.brokers.values()]
        numbers = (lambda: len(load.classic.acknowledged), lambda: load.member.read)
        with postgres.paused(), floods(ports, "flooded", each=3):
            outlast(max(LEASE_SECONDS, DEFAULT_DEADLINE) + 2, *numbers)
        wait_for_more([load.diskless], 20)
        outlast(2, *numbers)
        cluster.create("afterwards", via=2)


def test_a_table_of_diskless_topics_that_is_locked_does_not_stop_the_controller(
    tmp_path: Path, postgres: Postgres
) -> None:
    """An operator rebuilds the table: reads and commits that wait for it take no connection from the metadata."""
    database = Database(postgres)
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_cluster(tmp_path, database.url, (1,), shared) as cluster, ThreadPoolExecutor(10) as readers:
        cluster.create("diskless", via=1, config={"diskless.enable": "true"})
        asking = Asking(cluster, "diskless")
        wait_until(lambda: asking.fetch(1).error is ErrorCode.NONE, what="the topic to be served")
        with database.locked("inkless_log") as waiting:
            reads = [readers.submit(asking.fetch, 1, 1 + number) for number in range(10)]
            wait_until(lambda: waiting() >= 6, what="all connections for reads to wait")
            cluster.create("classic", via=1)
            assert not any(read.done() for read in reads), "they waited all the time"
        assert {read.result().error for read in reads} == {ErrorCode.OFFSET_OUT_OF_RANGE}


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("127.0.0.1:1/strandline", "strandline: PostgreSQL at 127.0.0.1:1 cannot be reached: Connection refused.\n"),
        ("db.invalid/strandline", "strandline: PostgreSQL at db.invalid:5432 cannot be reached: "),
        ("db:port/strandline", "strandline: strandline.metadata.url cannot be read: "),
    ],
)
def test_a_start_without_its_database_is_refused_with_a_sentence(tmp_path: Path, address: str, sentence: str) -> None:
    url = f"postgresql://keeper:top-secret@{address}"
    settings = {"strandline.metadata.url": url, "strandline.metadata.wait.ms": "0"}
    broker = BrokerProcess(tmp_path / "data", settings=settings)
    broker.spawn()
    try:
        assert broker.wait() == 1
    finally:
        broker.close()
    assert sentence in broker.log_text
    assert "Traceback" not in broker.log_text
    assert "top-secret" not in broker.log_text
