-- Producers that committed at $1 or later, or have a transaction open, stay.
DELETE FROM inkless_producer_state
WHERE (log_id, producer_id) IN (SELECT value->>0, value->>1 FROM json_each($2)) AND committed_at_ms < $1
    AND txn_first_offset < 0
