-- The switches of some topics. The transaction holds the only write lock already.
SELECT json_group_array(json_array(position))
FROM inkless_migration
WHERE topic_id IN (SELECT value->>0 FROM json_each($1)) AND aborted_at_ms IS NULL
