UPDATE inkless_log
SET log_start_offset = u.value->>1, tiered_log_start_offset = u.value->>2, tiered_high_offset = u.value->>3,
    migration_state = u.value->>4
FROM json_each($1) AS u
WHERE log_id = u.value->>0
