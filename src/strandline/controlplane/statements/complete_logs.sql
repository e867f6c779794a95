UPDATE inkless_log
SET migration_state = 'HYBRID'
WHERE topic_id = $1 AND migration_state = 'MIGRATING' AND diskless_log_start_offset >= 0 AND NOT is_deleted
