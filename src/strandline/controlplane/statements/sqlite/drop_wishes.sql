DELETE FROM inkless_tiering_topic
WHERE topic_id IN (SELECT value->>0 FROM json_each($1))
