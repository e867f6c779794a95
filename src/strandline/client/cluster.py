"""How our programs talk to a cluster: Kafka's protocol over one connection per broker, and errors as sentences."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from threading import Event
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from strandline.config.listeners import join_address, parse_address
from strandline.errors import StrandlineError
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import KAFKA_CODES, ErrorCode
from strandline.wire.messages.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import Message

Json: TypeAlias = dict[str, Any]
# A topic and one of its partitions.
Pair: TypeAlias = tuple[str, int]

# Timestamps with a meaning of their own, for `list_offsets`.
EARLIEST: Final = -2
LATEST: Final = -1
EARLIEST_LOCAL: Final = -4
_CONSUMER: Final = -1

# What a coordinator is asked for, and the last version of FindCoordinator that asks for one key.
_GROUP: Final = 0
_TRANSACTION: Final = 1
_LAST_WITH_ONE_KEY: Final = 3
_COORDINATOR_ATTEMPTS: Final = 50
_COORDINATOR_PAUSE_S: Final = 0.2
# A broker that has just become the coordinator does not know it yet, or is reading its log.
_NOT_YET: Final = frozenset(
    (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
)

_MEANINGS = {code: (cls.__doc__ or "").strip().rstrip(".") for cls, code in KAFKA_CODES.items()}


class CommandFailed(Exception):
    """A command cannot do what it was asked to. Its text is a sentence for the user at the terminal."""


class Cluster:
    """Connections to the brokers of a cluster, opened when needed and closed at the end of the block."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 30.0) -> None:
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._clients: dict[tuple[str, int], Client] = {}
        self._addresses: dict[int, tuple[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def any(self) -> Client:
        """A connection to the first broker named on the command line that answers. Raises CommandFailed."""
        addresses = [parse_address(one, name="--bootstrap") for one in self._bootstrap.split(",")]
        for address in addresses[:-1]:
            with contextlib.suppress(CommandFailed):
                return self._connect(address)
        return self._connect(addresses[-1])

    def broker(self, node_id: int) -> Client:
        """A connection to one broker, by id. Raises CommandFailed."""
        if node_id not in self._addresses:
            self.metadata(())
        if node_id not in self._addresses:
            raise CommandFailed(f"The cluster at {self._bootstrap} has no broker {node_id} at the moment.")
        return self._connect(self._addresses[node_id])

    def host_of(self, node_id: int) -> str:
        """The host that a broker advertises to clients. Raises CommandFailed."""
        self.broker(node_id)
        return self._addresses[node_id][0]

    def brokers(self) -> list[int]:
        """The ids of all brokers alive."""
        return sorted(broker.node_id for broker in self.metadata(()).brokers)

    def controller(self) -> Client:
        """A connection to the broker that takes administrative changes."""
        return self.broker(self.metadata(()).controller_id)

    def coordinator(self, group: str) -> Client:
        """A connection to the broker that coordinates a group, once it does. Raises CommandFailed."""
        for _ in range(_COORDINATOR_ATTEMPTS):
            _, client = self._find_coordinator(group, _GROUP, f"group {group}")
            if not client.offers(ApiKey.DESCRIBE_GROUPS):
                break
            answer = client.request(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group]))
            if answer.groups[0].error_code not in _NOT_YET:
                break
            Event().wait(_COORDINATOR_PAUSE_S)
        return client  # if it still does not coordinate the group, its answers say why

    def ask_loaded(self, node_id: int, api_key: ApiKey, request: Message) -> Message:
        """A broker's answer once its coordinators have read their logs; if they still have not, the answer says so."""
        client = self.broker(node_id)
        for _ in range(_COORDINATOR_ATTEMPTS):
            answer = client.request(api_key, request)
            if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                break
            Event().wait(_COORDINATOR_PAUSE_S)
        return answer

    def transaction_coordinator(self, transactional_id: str) -> tuple[int, Client]:
        """The broker that coordinates the transactions of a transactional id: its id, and a connection to it.

        Raises CommandFailed.
        """
        return self._find_coordinator(transactional_id, _TRANSACTION, f"transactional id {transactional_id}")

    def _find_coordinator(self, key: str, key_type: int, what: str) -> tuple[int, Client]:
        client = self.any()
        version = min(_LAST_WITH_ONE_KEY, client.version_of(ApiKey.FIND_COORDINATOR))
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        for _ in range(_COORDINATOR_ATTEMPTS):
            answer = client.request(ApiKey.FIND_COORDINATOR, request, version=version)
            if answer.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
                break
            Event().wait(_COORDINATOR_PAUSE_S)  # the first request of its kind creates the coordinator's topic
        check(answer.error_code, answer.error_message, f"The coordinator of {what} cannot be found")
        return answer.node_id, self._connect((answer.host, answer.port))

    def metadata(self, topics: Collection[str] | None) -> MetadataResponse:
        """Brokers and topics: none for an empty collection, all for None. Never creates a topic."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = self.any().request(ApiKey.METADATA, request)
        if not isinstance(answer, MetadataResponse):
            raise CommandFailed(f"{self._bootstrap} did not answer as a Kafka broker does.")
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def _connect(self, address: tuple[str, int]) -> Client:
        host, port = address[0] or "127.0.0.1", address[1]
        client = self._clients.get((host, port))
        if client is None:
            try:
                client = Client.connect(host, port, timeout_s=self._timeout_s)
            except (OSError, MalformedRequest) as error:
                raise CommandFailed(
                    f"No Kafka broker answers at {join_address(host, port)}: {_reason(error)}. "
                    "Start it, or name another one with --bootstrap."
                ) from error
            self._clients[host, port] = client
        return client


def partition_leaders(cluster: Cluster, topics: Collection[str]) -> dict[Pair, int]:
    """The leader of each partition of existing topics, -1 if it has none. Topics that do not exist are left out."""
    if not topics:
        return {}
    return {
        (str(topic.name), row.partition_index): row.leader_id
        for topic in cluster.metadata(topics).topics
        for row in topic.partitions
    }


def list_offsets(cluster: Cluster, leaders: Mapping[Pair, int], timestamp: int) -> dict[Pair, int]:
    """The offset of each partition at a (special) timestamp; partitions that answer with an error are left out.

    `leaders` has the leader of each (topic, partition).
    """
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(lambda: defaultdict(list))
    for (topic, partition), leader in leaders.items():
        by_leader[leader][topic].append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    found: dict[Pair, int] = {}
    for leader, topics in by_leader.items():
        wanted = [ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
        request = ListOffsetsRequest(replica_id=_CONSUMER, topics=wanted, timeout_ms=30_000)
        answer = cluster.broker(leader).request(ApiKey.LIST_OFFSETS, request)
        for row in answer.topics:
            for partition in row.partitions:
                if partition.error_code == ErrorCode.NONE:
                    found[row.name, partition.partition_index] = partition.offset
    return found


def check(error_code: int, message: str | None, what: str) -> None:
    """Raise CommandFailed, beginning with `what`, if a broker answered with an error."""
    if error_code != ErrorCode.NONE:
        raise CommandFailed(f"{what}: {explain(error_code, message)}")


def explain(error_code: int, message: str | None) -> str:
    """An error of a broker as a sentence: its own message, or else the meaning of the code."""
    try:
        code = ErrorCode(error_code)
    except ValueError:
        return message or f"Error {error_code}."
    text = (message or _MEANINGS.get(code) or code.name).rstrip(".")
    return f"{text} ({code.name})."


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Turn errors of talking to a broker into CommandFailed."""
    try:
        yield
    except StrandlineError as error:
        raise CommandFailed(str(error)) from error
    except (OSError, MalformedRequest) as error:
        raise CommandFailed(f"The broker did not answer: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    """The text of an error as a part of a sentence."""
    return str(error).rstrip(".")


def parse_assignments(entries: Collection[str], *, option: str) -> dict[str, str]:
    """name=value options as a mapping. Raises CommandFailed."""
    pairs: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise CommandFailed(f"{option} needs name=value, but was given {entry!r}.")
        pairs[name] = value
    return pairs
