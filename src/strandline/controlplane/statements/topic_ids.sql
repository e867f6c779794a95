SELECT topic_id
FROM inkless_log
UNION
SELECT topic_id
FROM inkless_migration
WHERE aborted_at_ms IS NULL
UNION
SELECT topic_id
FROM inkless_tiering_topic
