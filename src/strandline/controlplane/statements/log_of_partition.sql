SELECT log_id, log_start_offset, high_watermark, max_timestamp
FROM inkless_log
WHERE topic_id = $1 AND partition = $2 AND NOT is_deleted
