-- B0 of log $1 is unset again, by a leader of epoch $2.
UPDATE inkless_log
SET diskless_log_start_offset = -1, diskless_start_offset = -1, diskless_log_start_epoch = $2,
    migration_state = 'MIGRATING'
WHERE log_id = $1
