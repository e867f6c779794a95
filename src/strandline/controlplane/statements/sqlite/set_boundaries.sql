-- Logs that had no B0. They are empty: whatever lies below B0 is not in this database.
UPDATE inkless_log
SET high_watermark = u.value->>1, diskless_start_offset = u.value->>1, diskless_log_start_offset = u.value->>1,
    diskless_log_start_epoch = u.value->>2, last_epoch = u.value->>2, log_start_offset = u.value->>3,
    tiered_log_start_offset = u.value->>4, tiered_high_offset = u.value->>5,
    migration_state = u.value->>6, byte_size = 0, max_timestamp = -1,
    first_unstable_offset = -1, last_aborted_offset = -1
FROM json_each($1) AS u
WHERE log_id = u.value->>0
