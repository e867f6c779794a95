SELECT
    p.producer_id, p.producer_epoch, p.last_timestamp, p.batches, p.txn_first_offset, p.coordinator_epoch, p.txn_ended_ms
FROM inkless_log l
JOIN inkless_producer_state p ON p.log_id = l.log_id
WHERE l.topic_id = $1 AND l.partition = $2 AND NOT l.is_deleted AND p.producer_id BETWEEN $3 AND $4
ORDER BY p.producer_id
