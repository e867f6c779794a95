"""Settings of diskless topics: where their objects are, how they are written, read and cleaned up."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from strandline.config.declare import BOOLEAN, CLUSTER_WIDE, INT, LONG, PASSWORD, STRING, setting
from strandline.errors import InvalidConfig

SCHEMES: Final = ("file", "s3", "gs", "az", "memory")
_TASKS: Final = "reads are tasks of one event loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessSettings:
    """Settings of the writer, the reader and the cleaners of diskless topics."""

    diskless_storage_system_enable: bool = setting(
        "diskless.storage.system.enable",
        BOOLEAN,
        True,
        "Topics may be diskless. Costs nothing while there are none.",
    )
    log_diskless_enable: bool = setting(
        "log.diskless.enable",
        BOOLEAN,
        False,
        "A topic that is created without diskless.enable becomes diskless, unless it is compacted or internal. "
        "Topics that exist stay what they are.",
        dynamic=CLUSTER_WIDE,
    )

    # Where the objects are

    strandline_objects_url: str = setting(
        "strandline.objects.url",
        STRING,
        "file://strandline-data/objects",
        "The object store: file://directory, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or "
        "memory:// (for trials: objects are lost when the process ends). Without it: the bucket of "
        "inkless.storage.s3.bucket.name, or the directory objects below strandline.data.dir. Brokers of one cluster "
        "share it, clusters never do.",
        may_be_empty=False,
    )
    inkless_object_key_prefix: str = setting(
        "inkless.object.key.prefix",
        STRING,
        "",
        "The prefix of all object keys, behind the prefix of strandline.objects.url.",
    )
    inkless_storage_s3_bucket_name: str | None = setting(
        "inkless.storage.s3.bucket.name", STRING, None, "The bucket, where strandline.objects.url does not say it."
    )
    inkless_storage_s3_region: str | None = setting(
        "inkless.storage.s3.region", STRING, None, "The region of the bucket. Without it: AWS_REGION, or us-east-1."
    )
    inkless_storage_s3_endpoint_url: str | None = setting(
        "inkless.storage.s3.endpoint.url", STRING, None, "The address of an S3 service other than Amazon's."
    )
    inkless_storage_s3_path_style_access_enabled: bool = setting(
        "inkless.storage.s3.path.style.access.enabled",
        BOOLEAN,
        True,
        "The bucket is named in the path and not in the host name, as most services other than Amazon's want it.",
    )
    inkless_storage_s3_api_call_timeout: int = setting(
        "inkless.storage.s3.api.call.timeout",
        LONG,
        30_000,
        "The time in ms within which a call to the object store ends, retries included. Applies to all stores.",
        least=1,
    )
    inkless_storage_s3_api_call_attempt_timeout: int = setting(
        "inkless.storage.s3.api.call.attempt.timeout",
        LONG,
        10_000,
        "The time in ms within which one attempt of a call to the object store ends.",
        least=1,
    )
    inkless_storage_aws_access_key_id: str | None = setting(
        "inkless.storage.aws.access.key.id",
        STRING,
        None,
        "The access key. Without it: the environment (AWS_ACCESS_KEY_ID), or the role of the machine.",
    )
    inkless_storage_aws_secret_access_key: str | None = setting(
        "inkless.storage.aws.secret.access.key", PASSWORD, None, "The secret of the access key."
    )
    inkless_storage_aws_session_token: str | None = setting(
        "inkless.storage.aws.session.token", PASSWORD, None, "The token of a temporary access key."
    )

    # Writing

    inkless_produce_buffer_max_bytes: int = setting(
        "inkless.produce.buffer.max.bytes",
        INT,
        8 * 1024 * 1024,
        "A WAL object is closed when it holds this many bytes.",
        least=1,
    )
    inkless_produce_commit_interval_ms: int = setting(
        "inkless.produce.commit.interval.ms",
        INT,
        250,
        "The longest time for which batches are collected while earlier objects are written. Otherwise none waits.",
        least=1,
    )
    strandline_produce_linger_ms: int = setting(
        "strandline.produce.linger.ms",
        INT,
        0,
        "The time for which batches wait for others before an object is written, also while no other object is being "
        "written; an object that is a quarter full does not wait. More of it makes fewer and larger objects of a quiet "
        "broker, for later acknowledgements. With 250, a broker behaves as with Inkless' default of "
        "inkless.produce.commit.interval.ms.",
        least=0,
        most=60_000,
    )
    inkless_produce_max_upload_attempts: int = setting(
        "inkless.produce.max.upload.attempts",
        INT,
        3,
        "How often the upload of an object is tried before its producers get an error.",
        least=1,
    )
    inkless_produce_upload_backoff_ms: int = setting(
        "inkless.produce.upload.backoff.ms", INT, 10, "The pause before an upload is tried again.", least=0
    )
    inkless_produce_upload_thread_pool_size: int = setting(
        "inkless.produce.upload.thread.pool.size", INT, 8, "Objects that are written at the same time.", least=1
    )

    # Reading

    inkless_fetch_data_thread_pool_size: int = setting(
        "inkless.fetch.data.thread.pool.size", INT, 32, "Objects that are read at the same time.", least=1
    )
    inkless_fetch_metadata_thread_pool_size: int = setting(
        "inkless.fetch.metadata.thread.pool.size",
        INT,
        8,
        "Queries about batches that run at the same time.",
        least=1,
        no_effect=_TASKS,
    )
    inkless_fetch_find_batches_max_per_partition: int = setting(
        "inkless.fetch.find.batches.max.per.partition",
        INT,
        0,
        "Rows of the control plane that one read of a partition may use; 0: the broker chooses.",
        least=0,
    )
    inkless_fetch_lagging_consumer_thread_pool_size: int = setting(
        "inkless.fetch.lagging.consumer.thread.pool.size",
        INT,
        16,
        "Objects that are read for lagging consumers at the same time; 0: they share the limit of other consumers.",
        least=0,
    )
    inkless_fetch_lagging_consumer_threshold_ms: int = setting(
        "inkless.fetch.lagging.consumer.threshold.ms",
        LONG,
        -1,
        "Consumers of records older than this are lagging: their reads have their own limits on parallel reads and "
        "memory. -1 is a minute.",
        least=-1,
    )
    inkless_fetch_hedge_ttfb_threshold_ms: int = setting(
        "inkless.fetch.hedge.ttfb.threshold.ms",
        LONG,
        0,
        "A read without an answer after this time is sent a second time; 0 switches that off.",
        least=0,
    )
    inkless_consume_cache_max_bytes: int = setting(
        "inkless.consume.cache.max.bytes",
        LONG,
        256 * 1024 * 1024,
        "Memory for batches written or read recently, so that consumers at the end need no object reads; 0: none.",
        least=0,
    )

    # Topics that become diskless

    inkless_hybrid_read_enabled: bool = setting(
        "inkless.hybrid.read.enabled",
        BOOLEAN,
        True,
        "This broker serves records from before a topic became diskless, from its disks and from remote storage. If it "
        "is false, reads of them are answered with NOT_LEADER_OR_FOLLOWER, which consumers repeat; newer records are "
        "served.",
    )
    inkless_migration_segment_wait_ms: int = setting(
        "inkless.migration.segment.wait.ms",
        LONG,
        30_000,
        "How long the next topic waits for one whose partitions are all diskless already, while older records of it "
        "are copied to remote storage. After that the copy goes on beside others, and is reported as slow. Writes "
        "never wait for it.",
        least=0,
    )
    inkless_migration_parallel_topics: int = setting(
        "inkless.migration.parallel.topics",
        INT,
        5,
        "Topics of the cluster that become diskless at the same time; others wait in the order of the requests.",
        least=1,
    )

    inkless_migration_drain_wait_ms: int = setting(
        "inkless.migration.drain.wait.ms",
        LONG,
        5_000,
        "How long a topic that becomes diskless refuses new transactions so that open ones come to their end. If one "
        "does not, the switch steps back, names it, and tries again when it is over; until then everybody writes. At "
        "least as long passes between two such times.",
        least=1,
    )

    # Expiring and cleaning

    inkless_file_cleaner_interval_ms: int = setting(
        "inkless.file.cleaner.interval.ms",
        INT,
        120_000,
        "How often objects that nothing refers to any more are deleted.",
        least=1,
    )
    inkless_file_cleaner_retention_period_ms: int = setting(
        "inkless.file.cleaner.retention.period.ms",
        INT,
        60_000,
        "How long an object stays after nothing refers to it any more, for reads that are still running.",
        least=0,
    )
    inkless_file_cleaner_max_files_per_cycle: int = setting(
        "inkless.file.cleaner.max.files.per.cycle", INT, 20_000, "Objects deleted in one go.", least=1
    )
    inkless_retention_enforcement_interval_ms: int = setting(
        "inkless.retention.enforcement.interval.ms",
        INT,
        60_000,
        "How often retention.ms and retention.bytes of diskless topics are enforced.",
        least=1,
    )
    inkless_retention_enforcement_max_batches_per_request: int = setting(
        "inkless.retention.enforcement.max.batches.per.request",
        INT,
        2000,
        "Rows of one partition that retention deletes in one go; 0 is no limit.",
        least=0,
    )
    strandline_objects_orphan_scan_interval_ms: int = setting(
        "strandline.objects.orphan.scan.interval.ms",
        LONG,
        3_600_000,
        "How often the controller looks for objects of uploads that were never committed, and deletes them; 0 never.",
        least=0,
    )

    @property
    def objects_address(self) -> str:
        """Where the objects are, prefix included; a directory with its whole path."""
        address = self.strandline_objects_url
        if address.startswith("file://"):
            address = f"file://{os.path.abspath(address.removeprefix('file://'))}"
        if not self.inkless_object_key_prefix or address.startswith("memory://"):
            return address  # every memory:// is a store of its own
        return f"{address.rstrip('/')}/{self.inkless_object_key_prefix}"

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        if self.log_diskless_enable and not self.diskless_storage_system_enable:
            raise InvalidConfig("log.diskless.enable cannot be true while diskless.storage.system.enable is false.")
        url = urlsplit(self.strandline_objects_url)
        if url.scheme not in SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise InvalidConfig(f"strandline.objects.url must begin with one of {known}.")
        if url.username is not None or url.password is not None:
            raise InvalidConfig(
                "strandline.objects.url must not hold credentials. Set inkless.storage.aws.* or use the environment."
            )
        prefix = self.inkless_object_key_prefix
        if prefix.startswith("/") or prefix.endswith("/"):
            raise InvalidConfig(
                f"inkless.object.key.prefix must neither begin nor end with a slash, but is '{prefix}'."
            )
        if self.inkless_storage_s3_api_call_attempt_timeout > self.inkless_storage_s3_api_call_timeout:
            raise InvalidConfig(
                f"inkless.storage.s3.api.call.attempt.timeout ({self.inkless_storage_s3_api_call_attempt_timeout}) "
                f"must not be greater than inkless.storage.s3.api.call.timeout "
                f"({self.inkless_storage_s3_api_call_timeout})."
            )
        if (self.inkless_storage_aws_access_key_id is None) != (self.inkless_storage_aws_secret_access_key is None):
            raise InvalidConfig(
                "inkless.storage.aws.access.key.id and inkless.storage.aws.secret.access.key must be set together or "
                "not at all."
            )
