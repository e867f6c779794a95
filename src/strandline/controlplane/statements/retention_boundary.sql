-- The log start that retention allows for log $1, judged by its $2 oldest rows: they expire before time $3, and at least
-- $4 bytes stay. None while the log begins below its read boundary, which may just have moved: what is there goes first.
WITH oldest AS (
    SELECT n.*, sum(n.byte_size) OVER (ORDER BY n.last_offset) AS bytes_so_far
    FROM (
        SELECT last_offset, base_offset, byte_size, max_timestamp, log_append_timestamp
        FROM inkless_batch
        WHERE log_id = $1
        ORDER BY last_offset
        LIMIT $2
    ) AS n
)
SELECT coalesce(
    (
        SELECT min(o.base_offset)
        FROM oldest o
        WHERE NOT (
            o.last_offset < l.log_start_offset
            OR CASE WHEN o.max_timestamp < 0 THEN o.log_append_timestamp ELSE o.max_timestamp END < $3
            OR l.byte_size - o.bytes_so_far >= $4
        )
    ),
    (SELECT max(o.last_offset) + 1 FROM oldest o)
)
FROM inkless_log l
WHERE l.log_id = $1 AND l.log_start_offset >= l.diskless_start_offset
