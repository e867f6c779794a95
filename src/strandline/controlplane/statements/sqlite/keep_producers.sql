-- $1: now.
INSERT INTO inkless_producer_state (
    log_id, producer_id, producer_epoch, last_timestamp, committed_at_ms, batches, txn_first_offset, coordinator_epoch,
    txn_ended_ms
)
SELECT value->>0, value->>1, value->>2, value->>3, $1, value->>4, value->>5, value->>6, value->>7
FROM json_each($2)
WHERE TRUE
ON CONFLICT (log_id, producer_id) DO UPDATE
SET producer_epoch = excluded.producer_epoch, last_timestamp = excluded.last_timestamp,
    committed_at_ms = excluded.committed_at_ms, batches = excluded.batches,
    txn_first_offset = excluded.txn_first_offset, coordinator_epoch = excluded.coordinator_epoch,
    txn_ended_ms = excluded.txn_ended_ms
