INSERT INTO inkless_aborted_txn (log_id, last_offset, first_offset, producer_id, last_stable_offset)
SELECT value->>0, value->>1, value->>2, value->>3, value->>4
FROM json_each($1)
