-- Nothing is left of it.
DELETE FROM inkless_log
WHERE log_id = $1 AND is_deleted
