-- Where the search for files with eligible rows begins, and whether it has to go to the very end. $1: see Cutoff. It
-- begins with the oldest first row of a log that is not split: a row behind one that is not eligible waits for it, because
-- segments have no gaps. It has to go to the end if such a row is eligible only because its records are old: if not, files
-- that were committed after all cutoffs need no look. One lookup for each log and for each split file, however many files
-- have nothing to split.
SELECT
    min(b.file_id),
    max(CASE WHEN b.log_append_timestamp >= h.older_than_ms
        AND b.log_append_timestamp > h.committed_until_ms THEN 1 ELSE 0 END)
FROM (
    SELECT
        l.log_id, l.first_unstable_offset, r.value->>1 AS older_than_ms, r.value->>2 AS committed_until_ms,
        max(l.log_start_offset, l.diskless_start_offset, coalesce((
            SELECT CASE
                WHEN l.diskless_start_offset + sum(s.last_offset + 1 - s.base_offset) = max(s.last_offset) + 1
                THEN max(s.last_offset) + 1
            END
            FROM inkless_split_batch s
            WHERE s.topic_id = l.topic_id AND s.partition = l.partition AND s.base_offset >= l.diskless_start_offset
        ), 0)) AS from_offset
    FROM json_each($1) AS r
    CROSS JOIN inkless_log l ON l.topic_id = r.value->>0
    WHERE NOT l.is_deleted AND l.migration_state <> 'MIGRATING'
    AND (l.log_start_offset >= l.diskless_log_start_offset OR l.tiered_high_offset >= l.diskless_log_start_offset - 1)
) AS h
CROSS JOIN inkless_batch b ON b.log_id = h.log_id AND b.last_offset = (
    SELECT m.last_offset
    FROM inkless_batch m
    WHERE m.log_id = h.log_id AND m.last_offset >= h.from_offset AND m.tiering_state = 'DISKLESS'
    ORDER BY m.last_offset
    LIMIT 1
)
WHERE (h.first_unstable_offset < 0 OR b.last_offset < h.first_unstable_offset) AND (
    CASE WHEN b.max_timestamp BETWEEN 0 AND b.log_append_timestamp THEN b.max_timestamp
        ELSE b.log_append_timestamp END < h.older_than_ms
    OR b.log_append_timestamp <= h.committed_until_ms
)
