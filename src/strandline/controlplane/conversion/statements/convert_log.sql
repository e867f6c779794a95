-- Log $1, which is locked, has another segment. If no rows are left, it forgets their largest timestamp.
UPDATE inkless_log
SET tiered_log_start_offset = $2, tiered_high_offset = $3, diskless_start_offset = $4, migration_state = $5,
    max_timestamp = CASE WHEN high_watermark = $4 THEN -1 ELSE max_timestamp END
WHERE log_id = $1
