-- Rows of log $1 up to offset $2, with $3 bytes, were deleted: the log starts after them. An empty log forgets its largest
-- timestamp.
UPDATE inkless_log
SET byte_size = byte_size - $3,
    log_start_offset = CASE WHEN log_start_offset > $2 THEN log_start_offset ELSE $2 + 1 END,
    max_timestamp = CASE WHEN high_watermark = $2 + 1 THEN -1 ELSE max_timestamp END
WHERE log_id = $1
