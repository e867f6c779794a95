UPDATE inkless_log
SET migration_state = 'HYBRID'
WHERE topic_id = $1 AND migration_state = 'MIGRATING' AND NOT is_deleted
