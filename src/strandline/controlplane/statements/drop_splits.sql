-- The split files of log $1 that end at offset $2 or earlier.
DELETE FROM inkless_split_batch
WHERE topic_id = (SELECT topic_id FROM inkless_log WHERE log_id = $1)
    AND partition = (SELECT partition FROM inkless_log WHERE log_id = $1)
    AND base_offset <= $2 AND last_offset <= $2
RETURNING file_id
