-- The rows of files $1 that are not split. The transaction holds the only write lock already.
SELECT l.topic_id, l.partition, b.file_id, b.log_id, b.base_offset, b.last_offset, b.byte_size, b.log_append_timestamp
FROM json_each($1) AS f
CROSS JOIN inkless_batch b ON b.file_id = f.value->>0
CROSS JOIN inkless_log l ON l.log_id = b.log_id
WHERE b.tiering_state = 'DISKLESS' AND NOT l.is_deleted
ORDER BY b.log_id, b.last_offset
