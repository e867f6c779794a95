-- Each request with its log, and the rows from its offset on: at most $1, until they hold max_bytes. The rows of a log
-- are read by its primary key from the offset on, so that the query costs as much as its answer.
SELECT json_group_array(json_array(
    r.value->>0, l.log_start_offset, l.high_watermark, l.diskless_start_offset, l.first_unstable_offset,
    l.last_aborted_offset, json((
    SELECT json_group_array(json_array(
        b.base_offset, b.last_offset, b.file_id, f.object_key, b.byte_offset, b.byte_size, b.timestamp_type,
        b.log_append_timestamp, b.max_timestamp, b.leader_epoch
    ))
    FROM (
        SELECT n.*, sum(n.byte_size) OVER (ORDER BY n.last_offset) - n.byte_size AS bytes_before
        FROM (
            SELECT *
            FROM inkless_batch
            WHERE log_id = l.log_id AND last_offset >= r.value->>3 AND r.value->>3 >= l.log_start_offset
            ORDER BY last_offset
            LIMIT $1
        ) AS n
        ORDER BY n.last_offset
    ) AS b
    CROSS JOIN inkless_file f ON f.file_id = b.file_id
    WHERE b.bytes_before < r.value->>4 OR b.bytes_before = 0
))))
FROM json_each($2) AS r
CROSS JOIN inkless_log l ON l.topic_id = r.value->>1 AND l.partition = r.value->>2
WHERE NOT l.is_deleted AND l.diskless_log_start_offset >= 0
