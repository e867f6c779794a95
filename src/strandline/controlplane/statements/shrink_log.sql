UPDATE inkless_log
SET byte_size = byte_size - $2
WHERE log_id = $1
