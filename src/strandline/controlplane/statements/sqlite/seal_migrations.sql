-- $1: now. Of the switches of some topics: those of which every partition has its B0.
UPDATE inkless_migration
SET sealed_at_ms = $1
WHERE topic_id IN (SELECT value->>0 FROM json_each($2)) AND sealed_at_ms IS NULL AND partitions <= (
    SELECT count(*)
    FROM inkless_log l
    WHERE l.topic_id = inkless_migration.topic_id AND l.partition < inkless_migration.partitions
        AND l.diskless_log_start_offset >= 0 AND NOT l.is_deleted
)
