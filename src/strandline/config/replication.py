"""Settings of replication between brokers."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import CLUSTER_WIDE, INT, LONG, setting
from strandline.errors import InvalidConfig

_NO_THROTTLES = "replicas are not throttled in this version"
_NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """Settings of leaders and followers."""

    replica_lag_time_max_ms: int = setting(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "A follower that has not caught up for this long leaves the in-sync replicas.",
        least=1,
    )
    replica_fetch_max_bytes: int = setting(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "Bytes a follower asks for from one partition.",
        least=0,
    )
    replica_fetch_wait_max_ms: int = setting(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "How long a follower's fetch waits for new records.",
        least=0,
    )
    replica_fetch_min_bytes: int = setting(
        "replica.fetch.min.bytes", INT, 1, "Bytes a follower's fetch waits for.", least=0
    )
    replica_fetch_response_max_bytes: int = setting(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        "Bytes in the whole answer to a follower.",
        least=0,
    )
    replica_fetch_backoff_ms: int = setting(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "How long a follower rests after an error of a partition.",
        least=0,
    )
    replica_socket_timeout_ms: int = setting(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "How long a follower waits for an answer.",
        least=1,
    )
    replica_socket_receive_buffer_bytes: int = setting(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        "SO_RCVBUF of a follower's connections.",
        least=1,
        also=(-1,),
        no_effect="the system gives each connection as much as it needs",
    )
    num_replica_fetchers: int = setting(
        "num.replica.fetchers",
        INT,
        1,
        "Connections that a follower opens to each leader.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often the checkpoints of a log directory are written, if something in it has moved.",
        least=1,
    )
    # Kafka's reassignment tool sets the three throttles. As in Kafka they are shown only while they are set.
    leader_replication_throttled_rate: int = setting(
        "leader.replication.throttled.rate",
        LONG,
        _NO_LIMIT,
        "Bytes a second that leaders send to throttled followers.",
        least=0,
        dynamic=CLUSTER_WIDE,
        no_effect=_NO_THROTTLES,
        is_internal=True,
    )
    follower_replication_throttled_rate: int = setting(
        "follower.replication.throttled.rate",
        LONG,
        _NO_LIMIT,
        "Bytes a second that throttled followers fetch.",
        least=0,
        dynamic=CLUSTER_WIDE,
        no_effect=_NO_THROTTLES,
        is_internal=True,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        _NO_LIMIT,
        "Bytes a second that replicas are moved with between log directories.",
        least=0,
        dynamic=CLUSTER_WIDE,
        no_effect="replicas cannot move between log directories yet",
        is_internal=True,
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        wait = self.replica_fetch_wait_max_ms
        for name, limit in (
            ("replica.socket.timeout.ms", self.replica_socket_timeout_ms),
            ("replica.lag.time.max.ms", self.replica_lag_time_max_ms),
        ):
            if wait > limit:
                raise InvalidConfig(f"replica.fetch.wait.max.ms ({wait}) must not be greater than {name} ({limit}).")
