"""Settings of producer state and of the transaction coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import BOOLEAN, CLUSTER_WIDE, INT, SHORT, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Settings of the transaction coordinator and the producer state of logs."""

    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "Longest transaction timeout a producer may ask for.",
        least=1,
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "A transactional id without activity for this long is forgotten.",
        least=1,
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        "A partition forgets a producer that has not written to it for this long.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "How often partitions look for producers to forget.",
        least=1,
        is_internal=True,
        no_effect="the interval is fixed at its default",
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state. Do not change it once the topic exists.",
        least=1,
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Replicas of __transaction_state. A cluster with fewer brokers creates the topic with as many as it has.",
        least=1,
    )
    transaction_state_log_min_isr: int = setting(
        "transaction.state.log.min.isr", INT, 2, "min.insync.replicas of __transaction_state.", least=1
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes", INT, 104_857_600, "segment.bytes of __transaction_state.", least=1
    )
    transaction_state_log_load_buffer_size: int = setting(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "Bytes read at a time when transactions are loaded.",
        least=1,
    )
    transaction_partition_verification_enable: bool = setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "A partition asks the coordinator whether it belongs to a transaction before it takes its records.",
        dynamic=CLUSTER_WIDE,
    )
    transaction_two_phase_commit_enable: bool = setting(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Producers may take part in distributed transactions.",
        no_effect="no client asks for two-phase commit before version 6 of InitProducerId, which is not offered",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often transactions past their timeout are looked for.",
        least=1,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often transactional ids to forget are looked for.",
        least=1,
    )
    add_partitions_to_txn_retry_backoff_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "First wait before an attempt to add partitions to a transaction is repeated.",
        least=1,
        no_effect="an attempt is repeated as soon as the transaction before it has ended",
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "How long a request about a transaction waits until the one before it has ended. Then the client is told to "
        "try again.",
        least=0,
    )
