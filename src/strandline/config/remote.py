"""Settings of tiered storage: where closed segments go, where their metadata is, and how much is done at once.

Names and defaults are Kafka's. Settings of the RemoteStorageManager (`rsm.config.*`) and of the
RemoteLogMetadataManager (`rlmm.config.*`) are handed on to them; the names that the built-in classes know are declared
here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strandline.config.declare import BOOLEAN, CLASS, CLUSTER_WIDE, DOUBLE, INT, LONG, PASSWORD, SHORT, STRING, setting
from strandline.errors import InvalidConfig
from strandline.model import INT64_MAX

BUILT_IN_STORAGE: Final = "strandline.remote.object_storage.ObjectRemoteStorage"
BUILT_IN_METADATA: Final = "strandline.remote.topic_based.manager.TopicBasedRemoteLogMetadataManager"
STORAGE_PREFIX: Final = "rsm.config."
METADATA_PREFIX: Final = "rlmm.config."
_KAFKA_METADATA: Final = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
_MEGABYTE: Final = 1024 * 1024
_NO_FOLLOWERS: Final = "tiered topics have no followers yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSettings:
    """Settings of the storage, the remote log metadata, the manager and the reader of tiered topics."""

    remote_log_storage_system_enable: bool = setting(
        "remote.log.storage.system.enable",
        BOOLEAN,
        False,
        "Topics may keep closed segments in remote storage (remote.storage.enable).",
    )

    # The storage

    remote_log_storage_manager_class_name: str = setting(
        "remote.log.storage.manager.class.name",
        CLASS,
        BUILT_IN_STORAGE,
        "The RemoteStorageManager: a Python class as package.module.Class. The built-in one keeps segments in the "
        "object store of rsm.config.url.",
        may_be_empty=False,
    )
    remote_log_storage_manager_class_path: str | None = setting(
        "remote.log.storage.manager.class.path",
        STRING,
        None,
        "A directory that is searched for the class of remote.log.storage.manager.class.name, besides Python's own.",
    )
    remote_log_storage_manager_impl_prefix: str = setting(
        "remote.log.storage.manager.impl.prefix",
        STRING,
        STORAGE_PREFIX,
        "Settings that begin with this are handed to the RemoteStorageManager, without it.",
        may_be_empty=False,
    )
    rsm_config_url: str = setting(
        "rsm.config.url",
        STRING,
        "file://strandline-data/remote",
        "The object store for segments: file://directory, s3://bucket/prefix, gs://bucket/prefix or "
        "az://container/prefix. Without it: the bucket of rsm.config.inkless.storage.s3.bucket.name, or the directory "
        "remote below strandline.data.dir. Brokers of one cluster share it.",
        may_be_empty=False,
    )
    rsm_config_key_prefix: str = setting(
        "rsm.config.key.prefix", STRING, "", "The prefix of all object keys, behind the prefix of the URL."
    )
    rsm_config_inkless_storage_s3_bucket_name: str | None = setting(
        "rsm.config.inkless.storage.s3.bucket.name", STRING, None, "The bucket, where rsm.config.url does not say it."
    )
    rsm_config_inkless_storage_s3_region: str | None = setting(
        "rsm.config.inkless.storage.s3.region",
        STRING,
        None,
        "The region of the bucket. Without it: AWS_REGION, or us-east-1.",
    )
    rsm_config_inkless_storage_s3_endpoint_url: str | None = setting(
        "rsm.config.inkless.storage.s3.endpoint.url", STRING, None, "The address of an S3 service other than Amazon's."
    )
    rsm_config_inkless_storage_s3_path_style_access_enabled: bool = setting(
        "rsm.config.inkless.storage.s3.path.style.access.enabled",
        BOOLEAN,
        True,
        "The bucket is named in the path and not in the host name, as most services other than Amazon's want it.",
    )
    rsm_config_inkless_storage_s3_api_call_timeout: int = setting(
        "rsm.config.inkless.storage.s3.api.call.timeout",
        LONG,
        30_000,
        "The time in ms within which a call to the object store ends, retries included. Applies to all stores.",
        least=1,
    )
    rsm_config_inkless_storage_s3_api_call_attempt_timeout: int = setting(
        "rsm.config.inkless.storage.s3.api.call.attempt.timeout",
        LONG,
        10_000,
        "The time in ms within which one attempt of a call to the object store ends.",
        least=1,
    )
    rsm_config_inkless_storage_aws_access_key_id: str | None = setting(
        "rsm.config.inkless.storage.aws.access.key.id",
        STRING,
        None,
        "The access key. Without it: the environment (AWS_ACCESS_KEY_ID), or the role of the machine.",
    )
    rsm_config_inkless_storage_aws_secret_access_key: str | None = setting(
        "rsm.config.inkless.storage.aws.secret.access.key", PASSWORD, None, "The secret of the access key."
    )
    rsm_config_inkless_storage_aws_session_token: str | None = setting(
        "rsm.config.inkless.storage.aws.session.token", PASSWORD, None, "The token of a temporary access key."
    )

    # Remote log metadata

    remote_log_metadata_manager_class_name: str = setting(
        "remote.log.metadata.manager.class.name",
        CLASS,
        BUILT_IN_METADATA,
        "The RemoteLogMetadataManager: a Python class as package.module.Class. The built-in one keeps its records "
        "in the topic __remote_log_metadata; its name in Kafka is accepted, too.",
        may_be_empty=False,
    )
    remote_log_metadata_manager_class_path: str | None = setting(
        "remote.log.metadata.manager.class.path",
        STRING,
        None,
        "A directory that is searched for the class of remote.log.metadata.manager.class.name, besides Python's own.",
    )
    remote_log_metadata_manager_impl_prefix: str = setting(
        "remote.log.metadata.manager.impl.prefix",
        STRING,
        METADATA_PREFIX,
        "Settings that begin with this are handed to the RemoteLogMetadataManager, without it.",
        may_be_empty=False,
    )
    remote_log_metadata_manager_listener_name: str | None = setting(
        "remote.log.metadata.manager.listener.name",
        STRING,
        None,
        "The listener of other brokers that lead partitions of __remote_log_metadata.",
        no_effect="brokers reach each other at the listener of inter.broker.listener.name",
    )
    remote_log_metadata_custom_metadata_max_bytes: int = setting(
        "remote.log.metadata.custom.metadata.max.bytes",
        INT,
        128,
        "The most bytes of custom metadata that a RemoteStorageManager may add to the metadata of a segment. A copy "
        "with more is deleted, and copying of that partition stops.",
        least=0,
    )
    rlmm_config_remote_log_metadata_topic_num_partitions: int = setting(
        "rlmm.config.remote.log.metadata.topic.num.partitions",
        INT,
        50,
        "Partitions of __remote_log_metadata, when it is created. Never change it afterwards.",
        least=1,
    )
    rlmm_config_remote_log_metadata_topic_replication_factor: int = setting(
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        SHORT,
        3,
        "Replicas of __remote_log_metadata, when it is created; fewer if the cluster cannot have as many.",
        least=1,
    )
    rlmm_config_remote_log_metadata_topic_retention_ms: int = setting(
        "rlmm.config.remote.log.metadata.topic.retention.ms",
        LONG,
        -1,
        "retention.ms of __remote_log_metadata, when it is created. -1 keeps everything; anything else must be longer "
        "than the retention of every tiered topic.",
        least=-1,
    )
    rlmm_config_remote_log_metadata_consume_wait_ms: int = setting(
        "rlmm.config.remote.log.metadata.consume.wait.ms",
        LONG,
        120_000,
        "How long a write to __remote_log_metadata waits until this broker has read it back.",
        least=0,
    )
    rlmm_config_remote_log_metadata_initialization_retry_max_timeout_ms: int = setting(
        "rlmm.config.remote.log.metadata.initialization.retry.max.timeout.ms",
        LONG,
        120_000,
        "How long to try to create __remote_log_metadata before the failure is logged.",
        least=0,
    )
    rlmm_config_remote_log_metadata_initialization_retry_interval_ms: int = setting(
        "rlmm.config.remote.log.metadata.initialization.retry.interval.ms",
        LONG,
        100,
        "The pause between two attempts to create it.",
        least=0,
    )

    # The manager

    remote_log_manager_task_interval_ms: int = setting(
        "remote.log.manager.task.interval.ms",
        LONG,
        30_000,
        "How often a partition is checked for segments to copy and segments to expire.",
        least=1,
    )
    remote_log_manager_copier_thread_pool_size: int = setting(
        "remote.log.manager.copier.thread.pool.size", INT, 10, "Partitions that copy at the same time.", least=1
    )
    remote_log_manager_expiration_thread_pool_size: int = setting(
        "remote.log.manager.expiration.thread.pool.size",
        INT,
        10,
        "Partitions that delete expired segments at the same time.",
        least=1,
    )
    remote_log_manager_follower_thread_pool_size: int = setting(
        "remote.log.manager.follower.thread.pool.size",
        INT,
        2,
        "Follower partitions that check at the same time what their leader has copied.",
        least=1,
        no_effect=_NO_FOLLOWERS,
    )
    remote_log_manager_thread_pool_size: int = setting(
        "remote.log.manager.thread.pool.size",
        INT,
        2,
        "As remote.log.manager.follower.thread.pool.size; the older name.",
        least=1,
        no_effect=_NO_FOLLOWERS,
    )
    remote_log_manager_task_retry_backoff_ms: int = setting(
        "remote.log.manager.task.retry.backoff.ms",
        LONG,
        500,
        "The pause after the first failure of a partition's task. It doubles with each further failure.",
        least=1,
    )
    remote_log_manager_task_retry_backoff_max_ms: int = setting(
        "remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, "The longest such pause.", least=1
    )
    remote_log_manager_task_retry_jitter: float = setting(
        "remote.log.manager.task.retry.jitter",
        DOUBLE,
        0.2,
        "The fraction by which such a pause varies randomly.",
        least=0.0,
        most=0.5,
    )
    remote_log_manager_copy_max_bytes_per_second: int = setting(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        INT64_MAX,
        "The most bytes per second that this broker copies to remote storage.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    remote_log_manager_copy_quota_window_num: int = setting(
        "remote.log.manager.copy.quota.window.num", INT, 11, "Windows over which the copy quota is taken.", least=1
    )
    remote_log_manager_copy_quota_window_size_seconds: int = setting(
        "remote.log.manager.copy.quota.window.size.seconds", INT, 1, "The length of such a window.", least=1
    )

    # The reader

    remote_log_reader_threads: int = setting(
        "remote.log.reader.threads", INT, 10, "Reads of remote segments that run at the same time.", least=1
    )
    remote_log_reader_max_pending_tasks: int = setting(
        "remote.log.reader.max.pending.tasks",
        INT,
        100,
        "Reads of remote segments that may wait for a free thread. Further ones fail, and the client tries again.",
        least=1,
    )
    remote_log_index_file_cache_total_size_bytes: int = setting(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1024 * _MEGABYTE,
        "Disk space for indexes of remote segments, in remote-log-index-cache of the first log directory.",
        least=1,
    )
    remote_log_index_file_cache_total_size_mb: int | None = setting(
        "remote.log.index.file.cache.total.size.mb",
        LONG,
        None,
        "As remote.log.index.file.cache.total.size.bytes, in MiB: the name in KIP-405. Only one of them may be given.",
        least=1,
    )
    strandline_remote_read_cache_max_bytes: int = setting(
        "strandline.remote.read.cache.max.bytes",
        LONG,
        64 * _MEGABYTE,
        "Memory for parts of remote segments that were read recently or are read ahead.",
        least=_MEGABYTE,
    )
    remote_fetch_max_wait_ms: int = setting(
        "remote.fetch.max.wait.ms",
        INT,
        500,
        "How long a fetch waits for remote storage. The read continues, so that the next fetch finds its result.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    remote_list_offsets_request_timeout_ms: int = setting(
        "remote.list.offsets.request.timeout.ms",
        LONG,
        30_000,
        "How long a search by timestamp waits for remote storage.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    remote_log_manager_fetch_max_bytes_per_second: int = setting(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        INT64_MAX,
        "The most bytes per second that this broker reads from remote storage.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    remote_log_manager_fetch_quota_window_num: int = setting(
        "remote.log.manager.fetch.quota.window.num", INT, 11, "Windows over which the fetch quota is taken.", least=1
    )
    remote_log_manager_fetch_quota_window_size_seconds: int = setting(
        "remote.log.manager.fetch.quota.window.size.seconds", INT, 1, "The length of such a window.", least=1
    )

    @property
    def index_cache_max_bytes(self) -> int:
        """The disk space for indexes, whichever of the two settings gives it."""
        megabytes = self.remote_log_index_file_cache_total_size_mb
        return self.remote_log_index_file_cache_total_size_bytes if megabytes is None else megabytes * _MEGABYTE

    @property
    def has_built_in_metadata(self) -> bool:
        """True if remote log metadata is in __remote_log_metadata."""
        return self.remote_log_metadata_manager_class_name in (BUILT_IN_METADATA, _KAFKA_METADATA)

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        least, most = self.remote_log_manager_task_retry_backoff_ms, self.remote_log_manager_task_retry_backoff_max_ms
        if least > most:
            raise InvalidConfig(
                f"remote.log.manager.task.retry.backoff.ms ({least}) must not be greater than "
                f"remote.log.manager.task.retry.backoff.max.ms ({most})."
            )
        attempt = self.rsm_config_inkless_storage_s3_api_call_attempt_timeout
        if attempt > self.rsm_config_inkless_storage_s3_api_call_timeout:
            raise InvalidConfig(
                f"rsm.config.inkless.storage.s3.api.call.attempt.timeout ({attempt}) must not be greater than "
                f"rsm.config.inkless.storage.s3.api.call.timeout "
                f"({self.rsm_config_inkless_storage_s3_api_call_timeout})."
            )
        default = 1024 * _MEGABYTE
        if (
            self.remote_log_index_file_cache_total_size_mb is not None
            and self.remote_log_index_file_cache_total_size_bytes != default
        ):
            raise InvalidConfig(
                "remote.log.index.file.cache.total.size.mb and remote.log.index.file.cache.total.size.bytes mean the "
                "same: only one of them may be given."
            )
