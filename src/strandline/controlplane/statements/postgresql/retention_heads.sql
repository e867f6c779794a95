-- Each rule with its log, and whether its oldest row may be deleted: it lies below the log start, or has expired, or the
-- log keeps its retention size without it. Rows of a log that begins below its read boundary stay: its prefix goes first.
-- Rows below that boundary are in segments, and were left by a crash: the boundary again, if there are such rows.
SELECT
    r.position, l.log_id, l.log_start_offset,
    coalesce(
        l.log_start_offset >= l.diskless_start_offset AND l.diskless_log_start_offset >= 0 AND (
            b.last_offset < l.log_start_offset
            OR CASE WHEN b.max_timestamp < 0 THEN b.log_append_timestamp ELSE b.max_timestamp END < r.expire_before
            OR l.byte_size - b.byte_size >= r.retention_bytes
        ),
        FALSE
    ),
    CASE WHEN b.last_offset < l.diskless_start_offset AND l.log_start_offset < l.diskless_start_offset
        THEN l.diskless_start_offset END
FROM unnest($1::int[], $2::uuid[], $3::int[], $4::bigint[], $5::bigint[])
    AS r(position, topic_id, partition, expire_before, retention_bytes)
JOIN inkless_log l ON l.topic_id = r.topic_id AND l.partition = r.partition AND NOT l.is_deleted
LEFT JOIN LATERAL (
    SELECT *
    FROM inkless_batch
    WHERE log_id = l.log_id
    ORDER BY last_offset
    LIMIT 1
) AS b ON TRUE
