INSERT INTO inkless_migration (topic_id, topic_name, partitions, requested_at_ms)
VALUES ($1, $2, $3, {now_ms})
ON CONFLICT (topic_id) DO NOTHING
