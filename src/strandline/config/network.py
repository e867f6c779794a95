"""Settings of the network server: listeners, sockets, connections, request limits."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import CLUSTER_WIDE, INT, LIST, LONG, PER_BROKER, STRING, setting
from strandline.config.listeners import Endpoint, check_distinct_ports, parse_listeners, parse_protocol_map
from strandline.errors import InvalidConfig
from strandline.model import INT32_MAX

_ONE_LOOP = "one event loop does the work"
_MAX_HELD_BYTES = 256 * 1024 * 1024
_DEFAULT_PROTOCOLS = (
    "SASL_SSL:SASL_SSL",
    "PLAINTEXT:PLAINTEXT",
    "SSL:SSL",
    "SASL_PLAINTEXT:SASL_PLAINTEXT",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """Settings of the network server."""

    listeners: tuple[str, ...] = setting(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        "The addresses on which Kafka clients are served, as NAME://host:port, separated by commas. "
        "Without a host: all interfaces. Port 0: any free port.",
        may_be_empty=False,
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that are advertised to clients, where they differ from listeners. "
        "Without it: listeners, with the machine's name where a listener names no host.",
        may_be_empty=False,
    )
    listener_security_protocol_map: tuple[str, ...] = setting(
        "listener.security.protocol.map",
        LIST,
        _DEFAULT_PROTOCOLS,
        "The security protocol of each listener name. Only PLAINTEXT is available in this version.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        "controller.listener.names",
        LIST,
        (),
        "Listener names that Kafka would use for its controller quorum. Accepted because Kafka's files have them: "
        "these listeners are not opened, since controllers coordinate through the metadata database.",
    )
    inter_broker_listener_name: str | None = setting(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener that brokers use among themselves. Without it: the first whose protocol is "
        "security.inter.broker.protocol.",
        may_be_empty=False,
    )
    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The security protocol between brokers, where inter.broker.listener.name is not set.",
        allowed=("PLAINTEXT",),
        no_effect="PLAINTEXT is the only protocol in this version",
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        INT,
        102_400,
        "SO_SNDBUF of client connections. -1, and Kafka's default, leave it to the operating system.",
        least=1,
        also=(-1,),
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        "SO_RCVBUF of client connections. -1, and Kafka's default, leave it to the operating system.",
        least=1,
        also=(-1,),
    )
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        "Largest request; a connection that announces more is closed.",
        least=1,
    )
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size",
        INT,
        50,
        "Connections that may wait to be accepted on a listener; never fewer than 1024.",
        least=1,
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "A connection without a request for this long is closed.",
    )
    max_connections: int = setting(
        "max.connections",
        INT,
        INT32_MAX,
        "Open connections on the whole broker; a further one closes the connection that has been idle for longest.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        INT,
        INT32_MAX,
        "Open connections from one address; further ones are closed at once.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides: tuple[str, ...] = setting(
        "max.connections.per.ip.overrides",
        LIST,
        (),
        "Exceptions from max.connections.per.ip, as address:count.",
        dynamic=CLUSTER_WIDE,
    )
    max_connection_creation_rate: int = setting(
        "max.connection.creation.rate",
        INT,
        INT32_MAX,
        "New connections a second on the whole broker; more have to wait.",
        least=0,
        dynamic=CLUSTER_WIDE,
        no_effect="new connections are not counted by time yet",
    )
    queued_max_requests: int = setting(
        "queued.max.requests",
        INT,
        500,
        "Requests that the broker may process at a time before it stops reading from connections.",
        least=1,
        no_effect="only the bytes of requests that are processed are limited, not their number",
    )
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes",
        LONG,
        -1,
        "Bytes of requests that are processed before the broker stops reading from connections. -1 is 256 MiB. "
        "Small requests of connections that wait for nothing are read even then.",
    )
    strandline_queued_max_diskless_bytes: int = setting(
        "strandline.queued.max.diskless.bytes",
        LONG,
        256 * 1024 * 1024,
        "Bytes of diskless batches that wait to be uploaded and committed. From half of it on, connections that have "
        "such batches are not read; beyond it batches are refused with REQUEST_TIMED_OUT.",
        least=1024 * 1024,
    )
    strandline_queued_max_answer_bytes: int = setting(
        "strandline.queued.max.answer.bytes",
        LONG,
        128 * 1024 * 1024,
        "Bytes of diskless and remote records in memory that are being read for clients or sent to them. The less is "
        "left, the smaller are answers; at the limit Fetch requests wait.",
        least=1024 * 1024,
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms",
        INT,
        30_000,
        "How long a broker waits for the answer of another one.",
        least=1,
        no_effect="requests between brokers have fixed timeouts",
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        INT,
        57_671_680,
        "Largest answer to a Fetch request, whatever the client asks for.",
        least=1024,
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "Fetch sessions kept; a client without one sends all its partitions each time.",
        least=0,
    )
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        INT,
        2000,
        "Partitions in one answer to DescribeTopicPartitions.",
        least=1,
    )

    num_network_threads: int = setting(
        "num.network.threads",
        INT,
        3,
        "Threads of Kafka's network layer or its workers.",
        least=1,
        dynamic=CLUSTER_WIDE,
        no_effect=_ONE_LOOP,
    )
    num_io_threads: int = setting(
        "num.io.threads",
        INT,
        8,
        "Threads of Kafka's network layer or its workers.",
        least=1,
        dynamic=CLUSTER_WIDE,
        no_effect=_ONE_LOOP,
    )
    background_threads: int = setting(
        "background.threads",
        INT,
        10,
        "Threads of Kafka's network layer or its workers.",
        least=1,
        dynamic=CLUSTER_WIDE,
        no_effect=_ONE_LOOP,
    )
    sasl_kerberos_min_time_before_relogin: int = setting(
        "sasl.kerberos.min.time.before.relogin",
        LONG,
        60_000,
        "Kerberos.",
        dynamic=PER_BROKER,
        no_effect="client test suites change it to see that dynamic settings work",
    )

    @property
    def max_held_bytes(self) -> int:
        """Bytes of requests without an answer, above which the broker stops reading."""
        return self.queued_max_request_bytes if self.queued_max_request_bytes > 0 else _MAX_HELD_BYTES

    @property
    def diskless_pause_bytes(self) -> int:
        """Bytes of uncommitted diskless batches, above which connections with such batches are not read.

        Half of the limit: each other connection may still send one request before it has to wait as well.
        """
        return self.strandline_queued_max_diskless_bytes // 2

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners to open. Raises InvalidConfig."""
        protocols = parse_protocol_map(self.listener_security_protocol_map)
        entries = [entry for entry in self.listeners if entry.partition("://")[0] not in self.controller_listener_names]
        endpoints = parse_listeners(entries, protocols, name="listeners")
        if not endpoints:
            raise InvalidConfig("listeners must have a listener for clients besides those of the controller.")
        check_distinct_ports(endpoints)
        return endpoints

    def advertised_endpoints(self, hostname: str) -> tuple[Endpoint, ...]:
        """The endpoints that are advertised to clients, with `hostname` where no host is named. Raises InvalidConfig.

        A port of 0 stays: the server replaces it with the port that it got.
        """
        if self.advertised_listeners is None:
            return tuple(e._replace(host=hostname) if e.is_everywhere else e for e in self.endpoints)
        protocols = parse_protocol_map(self.listener_security_protocol_map)
        advertised = parse_listeners(self.advertised_listeners, protocols, name="advertised.listeners")
        opened = {endpoint.name for endpoint in self.endpoints}
        for endpoint in advertised:
            if endpoint.name not in opened:
                raise InvalidConfig(
                    f"advertised.listeners names {endpoint.name}, which listeners does not have: "
                    f"{', '.join(sorted(opened))}."
                )
            if endpoint.host in ("0.0.0.0", "::"):
                raise InvalidConfig(f"advertised.listeners must name hosts that clients can reach, not {endpoint}.")
        return tuple(e._replace(host=hostname) if not e.host else e for e in advertised)

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves. Raises InvalidConfig."""
        names = [endpoint.name for endpoint in self.endpoints]
        wanted = self.inter_broker_listener_name
        if wanted is None:
            return names[0]
        if wanted.upper() not in names:
            raise InvalidConfig(f"inter.broker.listener.name must be one of {', '.join(names)}, but is {wanted!r}.")
        return wanted.upper()

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """max.connections.per.ip.overrides, by address. Raises InvalidConfig."""
        overrides: dict[str, int] = {}
        for entry in self.max_connections_per_ip_overrides:
            address, _, count = entry.rpartition(":")
            if not address or not count.isascii() or not count.isdigit():
                raise InvalidConfig(f"max.connections.per.ip.overrides must be address:count pairs, but has {entry!r}.")
            overrides[address.strip("[]")] = int(count)
        return overrides

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        self.advertised_endpoints("localhost")
        _ = self.inter_broker_listener
        _ = self.connections_per_ip_overrides
