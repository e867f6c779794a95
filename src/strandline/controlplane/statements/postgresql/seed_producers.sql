-- $1: now. The logs are locked, and have no producers.
INSERT INTO inkless_producer_state (log_id, producer_id, producer_epoch, last_timestamp, committed_at_ms, batches)
SELECT log_id, producer_id, producer_epoch, last_timestamp, $1::bigint, batches
FROM unnest($2::int[], $3::bigint[], $4::int[], $5::bigint[], $6::text[])
    AS p(log_id, producer_id, producer_epoch, last_timestamp, batches)
