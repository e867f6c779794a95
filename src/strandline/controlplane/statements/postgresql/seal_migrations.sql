-- $1: now. Of the switches of some topics, which are locked: those of which every partition has its B0.
UPDATE inkless_migration m
SET sealed_at_ms = $1::bigint
WHERE m.topic_id = ANY ($2::uuid[]) AND m.sealed_at_ms IS NULL AND m.partitions <= (
    SELECT count(*)
    FROM inkless_log l
    WHERE l.topic_id = m.topic_id AND l.partition < m.partitions AND l.diskless_log_start_offset >= 0
        AND NOT l.is_deleted
)
