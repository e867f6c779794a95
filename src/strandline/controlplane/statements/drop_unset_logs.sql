DELETE FROM inkless_log
WHERE topic_id = $1 AND diskless_log_start_offset < 0
