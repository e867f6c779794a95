-- The open transactions of some logs, which are locked.
SELECT json_group_array(json_array(p.log_id, p.producer_id, p.txn_first_offset))
FROM json_each($1) AS r
CROSS JOIN inkless_producer_state p ON p.log_id = r.value->>0 AND p.txn_first_offset >= 0
