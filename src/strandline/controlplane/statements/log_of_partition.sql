-- The log from its read boundary on.
SELECT
    log_id,
    CASE WHEN log_start_offset < diskless_start_offset THEN diskless_start_offset ELSE log_start_offset END,
    high_watermark,
    max_timestamp
FROM inkless_log
WHERE topic_id = $1 AND partition = $2 AND NOT is_deleted AND diskless_log_start_offset >= 0
