-- Where to look for the first row of log $1 with timestamp $2 or later: a binary search over the offsets [$3, $4) by the
-- largest timestamp up to each row, which never falls. Each step is one lookup in the primary key.
WITH RECURSIVE search (low, high) AS (
    SELECT CAST($3 AS BIGINT), CAST($4 AS BIGINT)
    UNION ALL
    SELECT
        CASE WHEN b.running_max_timestamp >= $2 THEN s.low ELSE b.last_offset + 1 END,
        CASE WHEN b.running_max_timestamp >= $2 THEN (s.low + s.high) / 2 ELSE s.high END
    FROM search s
    JOIN inkless_batch b ON b.log_id = $1 AND b.last_offset = (
        SELECT min(m.last_offset)
        FROM inkless_batch m
        WHERE m.log_id = $1 AND m.last_offset >= (s.low + s.high) / 2
    )
    WHERE s.low < s.high
)
SELECT max(low)
FROM search
