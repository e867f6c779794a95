-- Where a partition and its rows begin, and its first $4 transactions that were aborted at offset $3 or later, in the order
-- of their markers: at least one row, unless there is no such log.
SELECT l.log_start_offset, l.diskless_start_offset, a.producer_id, a.first_offset, a.last_offset, a.last_stable_offset
FROM inkless_log l
LEFT JOIN inkless_aborted_txn a ON a.log_id = l.log_id AND a.last_offset >= $3
WHERE l.topic_id = $1 AND l.partition = $2 AND NOT l.is_deleted
ORDER BY a.last_offset
LIMIT $4
