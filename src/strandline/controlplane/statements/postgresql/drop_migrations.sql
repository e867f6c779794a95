DELETE FROM inkless_migration
WHERE topic_id = ANY ($1::uuid[])
