-- $1: now; $2: claimant.
INSERT INTO inkless_split_batch (
    topic_id, partition, base_offset, last_offset, object_key, file_id, size_bytes, batch_count, max_timestamp,
    leader_epochs, committed_at_ms, created_by, created_at_ms
)
SELECT
    value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
    value->>9, value->>10, $2, $1
FROM json_each($3)
