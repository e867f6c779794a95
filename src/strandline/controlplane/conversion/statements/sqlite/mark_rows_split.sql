UPDATE inkless_batch
SET tiering_state = 'SPLIT'
FROM json_each($1) AS r
WHERE log_id = r.value->>0 AND last_offset = r.value->>1
