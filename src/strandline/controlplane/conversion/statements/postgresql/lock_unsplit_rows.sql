-- The rows of files $1 that are not split, locked in the order in which everyone locks rows.
SELECT l.topic_id, l.partition, b.file_id, b.log_id, b.base_offset, b.last_offset, b.byte_size, b.log_append_timestamp
FROM inkless_batch b
JOIN inkless_log l ON l.log_id = b.log_id
WHERE b.file_id = ANY ($1::bigint[]) AND b.tiering_state = 'DISKLESS' AND NOT l.is_deleted
ORDER BY b.log_id, b.last_offset
FOR UPDATE OF b
