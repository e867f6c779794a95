UPDATE inkless_batch b
SET tiering_state = 'SPLIT'
FROM unnest($1::int[], $2::bigint[]) AS r(log_id, last_offset)
WHERE b.log_id = r.log_id AND b.last_offset = r.last_offset
