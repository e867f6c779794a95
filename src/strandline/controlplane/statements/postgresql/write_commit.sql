-- All changes of a commit in one round trip. $1: now; $2..$6: files; $7..$16: rows of batches; $17..$23: logs, which are
-- locked already; $24..$31: producers; $32..$36: transactions that were aborted. A file of which no batch was accepted is
-- marked for deletion.
WITH files AS (
    INSERT INTO inkless_file (
        object_key, state, uploader_broker_id, size, committed_at_ms, marked_for_deletion_at_ms, answers
    )
    SELECT
        object_key,
        CASE WHEN is_used THEN 'uploaded' ELSE 'deleting' END,
        broker_id,
        size,
        $1::bigint,
        CASE WHEN is_used THEN NULL ELSE $1::bigint END,
        answers
    FROM unnest($2::text[], $3::int[], $4::bigint[], $5::boolean[], $6::text[])
        AS f(object_key, broker_id, size, is_used, answers)
    ORDER BY object_key
    RETURNING object_key, file_id
), batches AS (
    INSERT INTO inkless_batch (
        log_id, last_offset, base_offset, file_id, byte_offset, byte_size, timestamp_type, log_append_timestamp,
        max_timestamp, running_max_timestamp, leader_epoch
    )
    SELECT
        b.log_id, b.last_offset, b.base_offset, f.file_id, b.byte_offset, b.byte_size, b.timestamp_type, $1::bigint,
        b.max_timestamp, b.running_max_timestamp, b.leader_epoch
    FROM unnest(
        $7::text[], $8::int[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::smallint[],
        $14::bigint[], $15::bigint[], $16::int[]
    ) AS b(
        object_key, log_id, last_offset, base_offset, byte_offset, byte_size, timestamp_type,
        max_timestamp, running_max_timestamp, leader_epoch
    )
    JOIN files f ON f.object_key = b.object_key
), logs AS (
    UPDATE inkless_log l
    SET high_watermark = u.high_watermark, byte_size = l.byte_size + u.added_bytes, max_timestamp = u.max_timestamp,
        last_epoch = u.last_epoch, first_unstable_offset = u.first_unstable_offset,
        last_aborted_offset = u.last_aborted_offset
    FROM unnest($17::int[], $18::bigint[], $19::bigint[], $20::bigint[], $21::int[], $22::bigint[], $23::bigint[]) AS u(
        log_id, high_watermark, added_bytes, max_timestamp, last_epoch, first_unstable_offset, last_aborted_offset
    )
    WHERE l.log_id = u.log_id
), aborted AS (
    INSERT INTO inkless_aborted_txn (log_id, last_offset, first_offset, producer_id, last_stable_offset)
    SELECT log_id, last_offset, first_offset, producer_id, last_stable_offset
    FROM unnest($32::int[], $33::bigint[], $34::bigint[], $35::bigint[], $36::bigint[])
        AS a(log_id, last_offset, first_offset, producer_id, last_stable_offset)
)
INSERT INTO inkless_producer_state (
    log_id, producer_id, producer_epoch, last_timestamp, committed_at_ms, batches, txn_first_offset, coordinator_epoch,
    txn_ended_ms
)
SELECT
    log_id, producer_id, producer_epoch, last_timestamp, $1::bigint, batches, txn_first_offset, coordinator_epoch,
    txn_ended_ms
FROM unnest(
    $24::int[], $25::bigint[], $26::int[], $27::bigint[], $28::text[], $29::bigint[], $30::int[], $31::bigint[]
) AS p(log_id, producer_id, producer_epoch, last_timestamp, batches, txn_first_offset, coordinator_epoch, txn_ended_ms)
ON CONFLICT (log_id, producer_id) DO UPDATE
SET producer_epoch = excluded.producer_epoch, last_timestamp = excluded.last_timestamp,
    committed_at_ms = excluded.committed_at_ms, batches = excluded.batches,
    txn_first_offset = excluded.txn_first_offset, coordinator_epoch = excluded.coordinator_epoch,
    txn_ended_ms = excluded.txn_ended_ms
