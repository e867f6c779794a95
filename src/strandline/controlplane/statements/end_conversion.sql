UPDATE inkless_log
SET migration_state = 'DISKLESS_ONLY'
WHERE log_id = $1
