SELECT topic_id, is_paused, triggered_at_ms
FROM inkless_tiering_topic
WHERE is_paused OR triggered_at_ms IS NOT NULL
