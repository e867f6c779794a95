-- Each request with its log, and the rows from its offset on: at most $1, until they hold max_bytes. A log without
-- such rows gives one row of NULLs. The rows of a log are read by its primary key from the offset on, so that the query
-- costs as much as its answer.
SELECT
    r.position, l.log_start_offset, l.high_watermark, l.diskless_start_offset, l.first_unstable_offset,
    l.last_aborted_offset,
    b.base_offset, b.last_offset, b.file_id, f.object_key, b.byte_offset, b.byte_size, b.timestamp_type,
    b.log_append_timestamp, b.max_timestamp, b.leader_epoch
FROM unnest($2::int[], $3::uuid[], $4::int[], $5::bigint[], $6::bigint[])
    AS r(position, topic_id, partition, from_offset, max_bytes)
JOIN inkless_log l ON l.topic_id = r.topic_id AND l.partition = r.partition AND NOT l.is_deleted
    AND l.diskless_log_start_offset >= 0
LEFT JOIN LATERAL (
    SELECT *
    FROM (
        SELECT n.*, sum(n.byte_size) OVER (ORDER BY n.last_offset) - n.byte_size AS bytes_before
        FROM (
            SELECT *
            FROM inkless_batch
            WHERE log_id = l.log_id AND last_offset >= r.from_offset
            ORDER BY last_offset
            LIMIT $1
        ) AS n
    ) AS counted
    WHERE counted.bytes_before < r.max_bytes OR counted.bytes_before = 0
) AS b ON r.from_offset >= l.log_start_offset
LEFT JOIN inkless_file f ON f.file_id = b.file_id
ORDER BY r.position, b.last_offset
