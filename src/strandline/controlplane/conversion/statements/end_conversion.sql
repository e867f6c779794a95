UPDATE inkless_log
SET migration_state = 'DISKLESS_ONLY', tiered_log_start_offset = -1, tiered_high_offset = -1
WHERE log_id = $1
