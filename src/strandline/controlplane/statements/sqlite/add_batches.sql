-- $1: now.
INSERT INTO inkless_batch (
    file_id, log_id, last_offset, base_offset, byte_offset, byte_size, timestamp_type, log_append_timestamp,
    max_timestamp, running_max_timestamp, leader_epoch
)
SELECT
    value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, $1,
    value->>7, value->>8, value->>9
FROM json_each($2)
