-- A partition of topic $1 has lost its B0: its switch goes on, or begins again behind the others. $2: now;
-- the database's own time if it is NULL.
INSERT INTO inkless_migration (topic_id, topic_name, partitions, requested_at_ms)
SELECT topic_id, min(topic_name), max(partition) + 1, coalesce(CAST($2 AS BIGINT), {now_ms})
FROM inkless_log
WHERE topic_id = $1
GROUP BY topic_id
ON CONFLICT (topic_id) DO UPDATE
SET sealed_at_ms = NULL, aborted_at_ms = NULL
