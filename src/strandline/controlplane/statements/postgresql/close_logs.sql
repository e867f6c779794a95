UPDATE inkless_log
SET is_deleted = TRUE
WHERE log_id = ANY ($1::int[]) AND NOT is_deleted
