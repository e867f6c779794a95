DELETE FROM inkless_producer_state
WHERE log_id IN (SELECT log_id FROM inkless_log WHERE topic_id = $1 AND diskless_log_start_offset < 0)
