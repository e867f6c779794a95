-- Where the search for files with eligible rows begins, and whether it has to go to the very end. $1..$3: see Cutoff. It
-- begins with the oldest first row of a log that is not split: a row behind one that is not eligible waits for it, because
-- segments have no gaps. It has to go to the end if such a row is eligible only because its records are old: if not, files
-- that were committed after all cutoffs need no look. One lookup for each log and for each split file, however many files
-- have nothing to split.
SELECT
    min(b.file_id),
    max(CASE WHEN b.log_append_timestamp >= r.older_than_ms
        AND b.log_append_timestamp > r.committed_until_ms THEN 1 ELSE 0 END)
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS r(topic_id, older_than_ms, committed_until_ms)
JOIN inkless_log l ON l.topic_id = r.topic_id AND NOT l.is_deleted AND l.migration_state <> 'MIGRATING'
    AND (l.log_start_offset >= l.diskless_log_start_offset OR l.tiered_high_offset >= l.diskless_log_start_offset - 1)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(last_offset + 1 - base_offset), 0) AS offsets, max(last_offset) + 1 AS end_offset
    FROM inkless_split_batch
    WHERE topic_id = l.topic_id AND partition = l.partition AND base_offset >= l.diskless_start_offset
) AS s
CROSS JOIN LATERAL (
    SELECT file_id, last_offset, max_timestamp, log_append_timestamp
    FROM inkless_batch
    WHERE log_id = l.log_id AND last_offset >= l.log_start_offset AND last_offset >= CASE
        WHEN l.diskless_start_offset + s.offsets = s.end_offset THEN s.end_offset
        ELSE l.diskless_start_offset
    END AND tiering_state = 'DISKLESS'
    ORDER BY last_offset
    LIMIT 1
) AS b
WHERE (l.first_unstable_offset < 0 OR b.last_offset < l.first_unstable_offset) AND (
    CASE WHEN b.max_timestamp BETWEEN 0 AND b.log_append_timestamp THEN b.max_timestamp
        ELSE b.log_append_timestamp END < r.older_than_ms
    OR b.log_append_timestamp <= r.committed_until_ms
)
