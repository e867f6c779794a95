INSERT INTO inkless_tiering_topic (topic_id, is_paused)
VALUES ($1, $2)
ON CONFLICT (topic_id) DO UPDATE
SET is_paused = excluded.is_paused
