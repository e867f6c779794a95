"""Settings of the broker as a member of a cluster: its identity, its metadata, and defaults of new topics."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import BOOLEAN, INT, LIST, LONG, PASSWORD, STRING, setting
from strandline.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Settings of the controller, the broker lifecycle and topic creation."""

    node_id: int = setting("node.id", INT, 1, "The id of this broker, unique in its cluster.", least=0)
    process_roles: tuple[str, ...] = setting(
        "process.roles",
        LIST,
        ("broker", "controller"),
        "The roles of the process. One of the brokers with the role controller is the active controller.",
        allowed=("broker", "controller"),
        may_be_empty=False,
    )
    broker_rack: str | None = setting(
        "broker.rack", STRING, None, "The rack or zone of this broker; replicas are spread over racks."
    )
    strandline_data_dir: str = setting(
        "strandline.data.dir",
        STRING,
        "strandline-data",
        "The directory of this broker's data: logs (unless log.dirs is set) and the embedded metadata database (unless "
        "strandline.metadata.url is set).",
        may_be_empty=False,
    )
    strandline_metadata_url: str = setting(
        "strandline.metadata.url",
        PASSWORD,
        "sqlite:///strandline-data/metadata.db",
        "The metadata database: sqlite:///path for a cluster of one, postgresql://user:password@host/database for "
        "several brokers. Without it: the SQLite file metadata.db below strandline.data.dir.",
        may_be_empty=False,
    )
    strandline_metadata_wait_ms: int = setting(
        "strandline.metadata.wait.ms",
        INT,
        60_000,
        "How long a broker that starts waits for a database that cannot be reached, before it ends. 0: not at all.",
        least=0,
    )
    strandline_clock_difference_max_ms: int = setting(
        "strandline.clock.difference.max.ms",
        LONG,
        3_600_000,
        "A broker whose clock differs by more than this from that of PostgreSQL does not start. A minute is worth a "
        "warning.",
        least=1000,
    )
    broker_heartbeat_interval_ms: int = setting(
        "broker.heartbeat.interval.ms", INT, 2000, "How often the broker sends a heartbeat to the controller.", least=1
    )
    broker_session_timeout_ms: int = setting(
        "broker.session.timeout.ms",
        INT,
        9000,
        "A broker without a heartbeat for this long is fenced: its partitions get other leaders.",
        least=1,
    )
    initial_broker_registration_timeout_ms: int = setting(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        "A broker that cannot register within this time at its start stops.",
        least=1,
    )
    controlled_shutdown_enable: bool = setting(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "A stopping broker first hands its partitions to other leaders.",
    )
    num_partitions: int = setting(
        "num.partitions", INT, 1, "Partitions of a topic whose creator does not say how many.", least=1
    )
    default_replication_factor: int = setting(
        "default.replication.factor", INT, 1, "Replicas of a topic whose creator does not say how many.", least=1
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable", BOOLEAN, True, "A topic that a client asks for is created if it does not exist."
    )
    delete_topic_enable: bool = setting("delete.topic.enable", BOOLEAN, True, "Topics may be deleted.")
    auto_leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable", BOOLEAN, True, "Leadership goes back to preferred replicas by itself."
    )
    leader_imbalance_check_interval_seconds: int = setting(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often the controller looks for partitions not led by their preferred replica.",
        least=1,
    )
    unclean_leader_election_interval_ms: int = setting(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        "How often the controller looks for partitions without a leader that may elect one uncleanly.",
        least=1,
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        if "broker" not in self.process_roles:
            raise InvalidConfig("process.roles must contain broker: there is no process that is only a controller.")
        if self.broker_session_timeout_ms < 2 * self.broker_heartbeat_interval_ms:
            raise InvalidConfig(
                f"broker.session.timeout.ms ({self.broker_session_timeout_ms}) must be at least twice "
                f"broker.heartbeat.interval.ms ({self.broker_heartbeat_interval_ms})."
            )
        if not self.strandline_metadata_url.startswith(("sqlite:///", "postgresql://", "postgres://")):
            raise InvalidConfig(
                "strandline.metadata.url must be sqlite:///path or postgresql://user:password@host:port/database."
            )
