-- $1: now. The logs have no producers. No transaction is open.
INSERT INTO inkless_producer_state (
    log_id, producer_id, producer_epoch, last_timestamp, committed_at_ms, batches, coordinator_epoch
)
SELECT value->>0, value->>1, value->>2, value->>3, $1, value->>4, value->>5
FROM json_each($2)
