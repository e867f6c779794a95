-- $1: now. The logs are locked, and have no producers. No transaction is open.
INSERT INTO inkless_producer_state (
    log_id, producer_id, producer_epoch, last_timestamp, committed_at_ms, batches, coordinator_epoch
)
SELECT log_id, producer_id, producer_epoch, last_timestamp, $1::bigint, batches, coordinator_epoch
FROM unnest($2::int[], $3::bigint[], $4::int[], $5::bigint[], $6::text[], $7::int[])
    AS p(log_id, producer_id, producer_epoch, last_timestamp, batches, coordinator_epoch)
