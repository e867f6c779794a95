-- The rows of file $1 that are not split. The transaction holds the only write lock already.
SELECT l.topic_id, l.partition, b.log_id, b.base_offset, b.last_offset, b.byte_size, b.log_append_timestamp
FROM inkless_batch b
CROSS JOIN inkless_log l ON l.log_id = b.log_id
WHERE b.file_id = $1 AND b.tiering_state = 'DISKLESS' AND NOT l.is_deleted
ORDER BY b.log_id, b.last_offset
