DELETE FROM inkless_producer_state
WHERE log_id = ANY ($1::int[])
