-- $1: now; the database's own time if it is NULL.
SELECT position, topic_id, topic_name, partitions, requested_at_ms, sealed_at_ms, coalesce(CAST($1 AS BIGINT), {now_ms})
FROM inkless_migration
WHERE aborted_at_ms IS NULL
ORDER BY position
