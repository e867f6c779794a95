DELETE FROM inkless_batch
WHERE log_id = $1 AND last_offset <= $2
