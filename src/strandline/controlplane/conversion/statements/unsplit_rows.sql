UPDATE inkless_batch
SET tiering_state = 'DISKLESS'
WHERE log_id = (SELECT log_id FROM inkless_log WHERE topic_id = $1 AND partition = $2)
    AND last_offset >= $3 AND last_offset <= $4
RETURNING file_id
