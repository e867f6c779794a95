-- $2: now; the database's own time if it is NULL.
INSERT INTO inkless_tiering_topic (topic_id, triggered_at_ms)
VALUES ($1, coalesce(CAST($2 AS BIGINT), {now_ms}))
ON CONFLICT (topic_id) DO UPDATE
SET triggered_at_ms = excluded.triggered_at_ms
RETURNING triggered_at_ms
