-- The open transactions of some logs, which are locked.
SELECT log_id, producer_id, txn_first_offset
FROM inkless_producer_state
WHERE log_id = ANY ($1::int[]) AND txn_first_offset >= 0
