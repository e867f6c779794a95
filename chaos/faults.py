"""How each fault is done: as a block, at whose end it is undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from chaos.field import START_SECONDS, Field
from chaos.network import between
from chaos.plan import Planned

_ALTER = "ALTER SYSTEM {}; SELECT pg_reload_conf();"

Deed = Callable[[Field, Planned, int], AbstractContextManager[None]]


def deed_of(kind: str) -> Deed:
    """What is done to the broker, or to what the plan says. Raises KeyError."""
    return _DEEDS[kind]


@contextmanager
def _killed(field: Field, _: Planned, node: int) -> Iterator[None]:
    with _all_killed(field, [node]):
        yield


@contextmanager
def _killed_together(field: Field, _: Planned, __: int) -> Iterator[None]:
    with _all_killed(field, field.nodes):
        yield


@contextmanager
def _all_killed(field: Field, nodes: list[int]) -> Iterator[None]:
    brokers = [field.cluster.brokers[node] for node in nodes]
    for broker in brokers:
        broker.kill()
    try:
        yield
    finally:
        for broker in brokers:
            broker.spawn()
        for broker in brokers:
            broker.wait_accepting(within=START_SECONDS)


@contextmanager
def _suspended(field: Field, _: Planned, node: int) -> Iterator[None]:
    with field.cluster.brokers[node].suspended():
        yield


@contextmanager
def _suspended_together(field: Field, _: Planned, __: int) -> Iterator[None]:
    with ExitStack() as stack:
        for broker in field.cluster.brokers.values():
            stack.enter_context(broker.suspended())
        yield


@contextmanager
def _restarted(field: Field, _: Planned, node: int) -> Iterator[None]:
    broker = field.cluster.brokers[node]
    broker.stop(within=START_SECONDS)
    try:
        yield
    finally:
        broker.start(within=START_SECONDS)


@contextmanager
def _rolling(field: Field, _: Planned, __: int) -> Iterator[None]:
    """As an operator does it who waits each time until all replicas are in sync."""
    for broker in field.cluster.brokers.values():
        broker.stop(within=START_SECONDS)
        broker.start(within=START_SECONDS)
        field.wait_healthy()
    yield


@contextmanager
def _database_stopped(field: Field, _: Planned, __: int, *, is_killed: bool) -> Iterator[None]:
    asyncio.run(field.database.kill() if is_killed else field.database.stop())
    try:
        yield
    finally:
        asyncio.run(field.database.start())


@contextmanager
def _database_suspended(field: Field, _: Planned, __: int) -> Iterator[None]:
    with field.database.paused():
        yield


@contextmanager
def _database_read_only(field: Field, _: Planned, __: int) -> Iterator[None]:
    field.database.run(_ALTER.format("SET default_transaction_read_only = on"))
    try:
        yield
    finally:
        field.database.run(_ALTER.format("RESET default_transaction_read_only"))


@contextmanager
def _database_away(field: Field, _: Planned, node: int) -> Iterator[None]:
    """Its connections end, and new ones are refused."""
    field.links[node].go_down()
    try:
        yield
    finally:
        field.links[node].come_back()


@contextmanager
def _database_silent(field: Field, _: Planned, node: int) -> Iterator[None]:
    """What it sends to PostgreSQL, and what PostgreSQL answers, arrives when the fault is over."""
    field.links[node].hang()
    try:
        yield
    finally:
        field.links[node].come_back()


@contextmanager
def _link_cut(field: Field, one: Planned, _: int) -> Iterator[None]:
    with _network(field, between(one.node, [one.other])):
        yield


@contextmanager
def _link_cut_one_way(field: Field, one: Planned, _: int) -> Iterator[None]:
    with _network(field, [(one.node, one.other)]):
        yield


@contextmanager
def _unheard(field: Field, _: Planned, node: int) -> Iterator[None]:
    """It hears the other brokers, and they do not hear it."""
    with _network(field, [(node, other) for other in field.nodes if other != node]):
        yield


@contextmanager
def _cut_from_brokers(field: Field, _: Planned, node: int) -> Iterator[None]:
    with _network(field, between(node, field.nodes)):
        yield


@contextmanager
def _cut_from_all(field: Field, one: Planned, node: int) -> Iterator[None]:
    """From brokers and database; clients reach it, and it must not tell them anything that does not hold."""
    with _database_silent(field, one, node), _network(field, between(node, field.nodes)):
        yield


def _network(field: Field, links: list[tuple[int, int]]) -> AbstractContextManager[None]:
    assert field.network is not None, "this run has no network of its own"
    return field.network.cut(links)


@contextmanager
def _disk_full(field: Field, _: Planned, node: int) -> Iterator[None]:
    """A directory that has failed stays so until the broker starts again, and a broker without another one may end."""
    with field.disks[node].full():
        yield
    broker = field.cluster.brokers[node]
    if broker.is_running:
        broker.stop(within=START_SECONDS)
    broker.start(within=START_SECONDS)


@contextmanager
def _disk_hangs(field: Field, _: Planned, node: int) -> Iterator[None]:
    with field.disks[node].hanging():
        yield


@contextmanager
def _disk_slow(field: Field, _: Planned, node: int) -> Iterator[None]:
    with field.disks[node].slow():
        yield


_DEEDS: Mapping[str, Deed] = {
    "SIGKILL": _killed,
    "SIGKILL leader": _killed,
    "SIGKILL controller": _killed,
    "SIGKILL together": _killed_together,
    "SIGSTOP": _suspended,
    "SIGSTOP leader": _suspended,
    "SIGSTOP controller": _suspended,
    "SIGSTOP together": _suspended_together,
    "restart": _restarted,
    "rolling restart": _rolling,
    "database restart": partial(_database_stopped, is_killed=False),
    "database SIGKILL": partial(_database_stopped, is_killed=True),
    "database SIGSTOP": _database_suspended,
    "database read-only": _database_read_only,
    "database cut from one": _database_away,
    "database hangs for one": _database_silent,
    "link cut": _link_cut,
    "link cut one way": _link_cut_one_way,
    "leader cut one way": _unheard,
    "broker cut from brokers": _cut_from_brokers,
    "broker cut from all": _cut_from_all,
    "disk full": _disk_full,
    "disk hangs": _disk_hangs,
    "disk slow": _disk_slow,
}
