-- A log start never moves back, nor beyond the end. An empty log forgets its largest timestamp.
UPDATE inkless_log
SET log_start_offset = u.value->>1,
    max_timestamp = CASE WHEN u.value->>1 = high_watermark THEN -1 ELSE max_timestamp END
FROM json_each($1) AS u
WHERE log_id = u.value->>0 AND NOT is_deleted AND u.value->>1 > log_start_offset AND u.value->>1 <= high_watermark
