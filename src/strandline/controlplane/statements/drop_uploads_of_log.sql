DELETE FROM inkless_tiering_segment
WHERE topic_id = (SELECT topic_id FROM inkless_log WHERE log_id = $1)
    AND partition = (SELECT partition FROM inkless_log WHERE log_id = $1)
