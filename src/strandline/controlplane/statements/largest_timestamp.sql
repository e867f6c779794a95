-- The largest timestamp of log $1 from offset $2 on. Examines every row.
SELECT max(max_timestamp)
FROM inkless_batch
WHERE log_id = $1 AND last_offset >= $2
