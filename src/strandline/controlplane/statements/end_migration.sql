DELETE FROM inkless_migration
WHERE topic_id = $1
