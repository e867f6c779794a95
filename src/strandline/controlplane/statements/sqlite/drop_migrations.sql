DELETE FROM inkless_migration
WHERE topic_id IN (SELECT value->>0 FROM json_each($1))
