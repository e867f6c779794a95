SELECT
    l.topic_id, l.topic_name, l.partition,
    b.base_offset, b.last_offset, b.file_id, f.object_key, b.byte_offset, b.byte_size, b.timestamp_type,
    b.log_append_timestamp, b.max_timestamp, b.leader_epoch
FROM inkless_batch b
JOIN inkless_log l ON l.log_id = b.log_id
JOIN inkless_file f ON f.file_id = b.file_id
WHERE b.file_id = $1
ORDER BY b.byte_offset
