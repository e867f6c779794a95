DELETE FROM inkless_tiering_topic
WHERE topic_id = ANY ($1::uuid[])
