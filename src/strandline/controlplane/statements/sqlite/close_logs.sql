UPDATE inkless_log
SET is_deleted = TRUE
WHERE log_id IN (SELECT value->>0 FROM json_each($1)) AND NOT is_deleted
