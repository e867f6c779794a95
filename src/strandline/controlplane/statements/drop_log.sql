-- Its batches and producers are gone.
DELETE FROM inkless_log
WHERE log_id = $1 AND is_deleted
