-- The state of some producers in logs that are locked.
SELECT
    p.log_id, p.producer_id, p.producer_epoch, p.last_timestamp, p.batches, p.txn_first_offset, p.coordinator_epoch,
    p.txn_ended_ms
FROM unnest($1::int[], $2::bigint[]) AS r(log_id, producer_id)
JOIN inkless_producer_state p ON p.log_id = r.log_id AND p.producer_id = r.producer_id
