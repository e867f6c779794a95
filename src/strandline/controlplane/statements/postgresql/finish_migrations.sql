-- Of the switches of some topics, which are locked: those of which every partition has left MIGRATING.
DELETE FROM inkless_migration m
WHERE m.topic_id = ANY ($1::uuid[]) AND m.aborted_at_ms IS NULL AND m.partitions <= (
    SELECT count(*)
    FROM inkless_log l
    WHERE l.topic_id = m.topic_id AND l.partition < m.partitions AND l.diskless_log_start_offset >= 0
        AND l.migration_state IN ('HYBRID', 'DISKLESS_ONLY') AND NOT l.is_deleted
)
