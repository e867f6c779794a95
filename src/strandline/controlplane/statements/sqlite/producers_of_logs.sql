-- The state of some producers in logs that are locked.
SELECT json_group_array(json_array(
    p.log_id, p.producer_id, p.producer_epoch, p.last_timestamp, p.batches, p.txn_first_offset, p.coordinator_epoch,
    p.txn_ended_ms
))
FROM json_each($1) AS r
CROSS JOIN inkless_producer_state p ON p.log_id = r.value->>0 AND p.producer_id = r.value->>1
