SELECT log_id, producer_id
FROM inkless_producer_state
WHERE committed_at_ms < $1
LIMIT $2
