UPDATE inkless_log
SET high_watermark = u.value->>1, byte_size = byte_size + (u.value->>2), max_timestamp = u.value->>3,
    last_epoch = u.value->>4, first_unstable_offset = u.value->>5, last_aborted_offset = u.value->>6
FROM json_each($1) AS u
WHERE log_id = u.value->>0
