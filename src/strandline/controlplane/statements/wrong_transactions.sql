-- Logs whose first unstable offset is not that of their first open transaction, or that have aborted transactions behind
-- their newest abort marker; and how many of those.
SELECT topic_id, topic_name, partition, first_unstable_offset, first_open, aborted_behind
FROM (
    SELECT
        l.topic_id, l.topic_name, l.partition, l.first_unstable_offset,
        coalesce((
            SELECT min(p.txn_first_offset)
            FROM inkless_producer_state p
            WHERE p.log_id = l.log_id AND p.txn_first_offset >= 0
        ), -1) AS first_open,
        (
            SELECT count(*)
            FROM inkless_aborted_txn a
            WHERE a.log_id = l.log_id AND a.last_offset > l.last_aborted_offset
        ) AS aborted_behind
    FROM inkless_log l
    WHERE NOT l.is_deleted
) AS logs
WHERE first_unstable_offset <> first_open OR aborted_behind > 0
ORDER BY topic_id, partition
