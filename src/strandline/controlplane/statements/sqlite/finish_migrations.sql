-- Of the switches of some topics: those of which every partition has left MIGRATING.
DELETE FROM inkless_migration
WHERE topic_id IN (SELECT value->>0 FROM json_each($1)) AND aborted_at_ms IS NULL AND partitions <= (
    SELECT count(*)
    FROM inkless_log l
    WHERE l.topic_id = inkless_migration.topic_id AND l.partition < inkless_migration.partitions
        AND l.diskless_log_start_offset >= 0 AND l.migration_state IN ('HYBRID', 'DISKLESS_ONLY') AND NOT l.is_deleted
)
