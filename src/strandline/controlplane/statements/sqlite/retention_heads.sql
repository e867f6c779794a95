-- Each rule with its log, and whether its oldest row may be deleted: it lies below the log start, or has expired, or the
-- log keeps its retention size without it. Rows of a log that begins below its read boundary stay: its prefix goes first.
-- Rows below that boundary are in segments, and were left by a crash: the boundary again, if there are such rows.
SELECT json_group_array(json_array(
    r.value->>0, l.log_id, l.log_start_offset,
    coalesce(
        l.log_start_offset >= l.diskless_start_offset AND l.diskless_log_start_offset >= 0 AND (
            b.last_offset < l.log_start_offset
            OR CASE WHEN b.max_timestamp < 0 THEN b.log_append_timestamp ELSE b.max_timestamp END < r.value->>3
            OR l.byte_size - b.byte_size >= r.value->>4
        ),
        0
    ),
    CASE WHEN b.last_offset < l.diskless_start_offset AND l.log_start_offset < l.diskless_start_offset
        THEN l.diskless_start_offset END
))
FROM json_each($1) AS r
CROSS JOIN inkless_log l ON l.topic_id = r.value->>1 AND l.partition = r.value->>2 AND NOT l.is_deleted
LEFT JOIN inkless_batch b ON b.log_id = l.log_id AND b.last_offset = (
    SELECT min(m.last_offset)
    FROM inkless_batch m
    WHERE m.log_id = l.log_id
)
