DELETE FROM inkless_producer_state
WHERE log_id IN (SELECT value->>0 FROM json_each($1))
