-- A log start never moves back, nor beyond the end. An empty log forgets its largest timestamp.
UPDATE inkless_log l
SET log_start_offset = u.log_start_offset,
    max_timestamp = CASE WHEN u.log_start_offset = l.high_watermark THEN -1 ELSE l.max_timestamp END
FROM unnest($1::int[], $2::bigint[]) AS u(log_id, log_start_offset)
WHERE l.log_id = u.log_id AND NOT l.is_deleted
    AND u.log_start_offset > l.log_start_offset AND u.log_start_offset <= l.high_watermark
