SELECT log_id, producer_id
FROM inkless_producer_state
WHERE committed_at_ms < $1 AND txn_first_offset < 0
LIMIT $2
